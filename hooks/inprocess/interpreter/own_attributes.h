// What an object has of its own, without asking its class.
#pragma once

#include <string_view>

#include "hooks/inprocess/interpreter/code_api.h"

namespace devsan::hooks {

// The dictionary of an instance or a module, kept alive while this is. With the GIL, and in a PythonSection: where
// there is no dictionary, the error of having asked for it is taken away.
class OwnAttributes {
 public:
  explicit OwnAttributes(const void* object) noexcept {
    if (object == nullptr) return;
    dict_ = python.PyObject_GenericGetDict(const_cast<void*>(object), nullptr);
    if (dict_ == nullptr) python.PyErr_Restore(nullptr, nullptr, nullptr);
  }
  ~OwnAttributes() {
    if (dict_ != nullptr) python.Py_DecRef(dict_);
  }
  OwnAttributes(const OwnAttributes&) = delete;
  OwnAttributes& operator=(const OwnAttributes&) = delete;

  explicit operator bool() const noexcept { return dict_ != nullptr; }
  void* dict() const noexcept { return dict_; }
  // Borrowed; null where there is none.
  void* operator[](std::string_view name) const noexcept { return dict_entry(dict_, name); }

 private:
  void* dict_ = nullptr;
};

// Of a module that is imported already; of any other, nothing.
inline OwnAttributes attributes_of_module(std::string_view name) noexcept {
  return OwnAttributes(dict_entry(python.PyImport_GetModuleDict(), name));
}

}  // namespace devsan::hooks
