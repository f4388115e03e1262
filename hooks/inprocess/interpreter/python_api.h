// CPython as the hooks see it: the functions of python_api.def, and the few object layouts that have been the same in
// every release from 3.10 to 3.14. Everything is read-only here; nothing changes a reference count without saying so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace devsan::hooks {

struct PythonApi {
#define DEVSAN_PYTHON(required, result, name, parameters) result(*name) parameters = nullptr;
#include "hooks/inprocess/interpreter/python_api.def"
#undef DEVSAN_PYTHON
  void* code_type = nullptr;   // &PyCode_Type
  const void* none = nullptr;  // Py_None
  int minor = 0;               // of 3.x; 0 while there is no supported interpreter

  // Whether the functions are there that register a call at its end.
  bool can_call_at_exit() const noexcept {
    return Py_IncRef != nullptr && PySys_GetObject != nullptr && PyImport_ImportModule != nullptr &&
           PyObject_GetAttrString != nullptr && PyObject_CallFunctionObjArgs != nullptr && PyCFunction_NewEx != nullptr;
  }
};

// Filled by find_python(), and read once runtime.has_python says so.
extern PythonApi python;

// False where the process has no CPython 3.10 to 3.14, or one that lacks what is needed; `reason` then says so, and is
// null where there is no Python at all.
bool find_python(const char** reason) noexcept;

template <class T>
T field(const void* object, std::ptrdiff_t offset) noexcept {
  T value;
  std::memcpy(&value, static_cast<const char*>(object) + offset, sizeof value);
  return value;
}

// PyObject and PyTypeObject, which have not changed since 3.8.
inline constexpr std::ptrdiff_t kObjectType = 8;
inline constexpr std::ptrdiff_t kObjectSize = 16;  // ob_size of variable-size objects
inline constexpr std::ptrdiff_t kTypeName = 24;
inline constexpr std::ptrdiff_t kTypeBasicSize = 32;
inline constexpr std::ptrdiff_t kTypeDealloc = 48;
inline constexpr std::ptrdiff_t kTypeFlags = 168;
inline constexpr std::ptrdiff_t kTypeMembers = 240;
inline constexpr std::ptrdiff_t kTypeBase = 256;
// PyMemberDef: name, type, offset, flags, doc.
inline constexpr std::ptrdiff_t kMemberSize = 40;
inline constexpr std::ptrdiff_t kMemberType = 8;
inline constexpr std::ptrdiff_t kMemberOffset = 16;
inline constexpr std::ptrdiff_t kCellContent = 16;         // PyCellObject::ob_ref
inline constexpr std::ptrdiff_t kExceptionArguments = 24;  // PyBaseExceptionObject::args
inline constexpr std::ptrdiff_t kTupleItems = 24;
inline constexpr std::ptrdiff_t kListItems = 24;  // a pointer to the items

inline const void* type_of(const void* object) noexcept {
  return field<const void*>(object, kObjectType);
}
inline std::ptrdiff_t size_of(const void* object) noexcept {
  return field<std::ptrdiff_t>(object, kObjectSize);
}
inline bool has_type_flag(const void* object, unsigned bit) noexcept {
  return (field<unsigned long>(type_of(object), kTypeFlags) >> bit & 1) != 0;
}
inline bool is_list(const void* object) noexcept {
  return has_type_flag(object, 25);
}
inline bool is_tuple(const void* object) noexcept {
  return has_type_flag(object, 26);
}
inline bool is_text(const void* object) noexcept {
  return has_type_flag(object, 28);
}
inline bool is_dict(const void* object) noexcept {
  return has_type_flag(object, 29);
}
inline bool is_container(const void* object) noexcept {
  return is_list(object) || is_tuple(object) || is_dict(object);
}
inline bool is_exception(const void* object) noexcept {
  return has_type_flag(object, 30);
}
inline bool is_type(const void* object) noexcept {
  return has_type_flag(object, 31);
}

// A thread that asks a finalizing interpreter for the GIL is ended on the spot.
bool interpreter_lives() noexcept;

// The text of a str as UTF-8. Pure ASCII is a view of the object itself, the rest is written to `buffer` (cut at its
// end). Empty for anything that is no compact str. Reads immutable memory only, so it needs no GIL.
std::string_view text_of(const void* object, char* buffer, std::size_t buffer_size) noexcept;

// Learns how this interpreter lays out a str, from one that is ASCII. With the GIL; false where it is not understood.
bool learn_text_layout(void* ascii_text) noexcept;

// Holds the GIL and keeps the garbage collector, which would run finalizers, and the error indicator as they were.
class PythonSection {
 public:
  PythonSection() noexcept;
  ~PythonSection();
  PythonSection(const PythonSection&) = delete;
  PythonSection& operator=(const PythonSection&) = delete;

  // The exception that was on its way when the section began: its value, which may be a mere str, or null.
  const void* error() const noexcept { return error_[1]; }

 private:
  int gil_;
  int collector_;
  void* error_[3];  // type, value, traceback
};

// What an exception says: its first argument, if that is a str; a str says itself. As text_of().
std::string_view exception_text(const void* exception, char* buffer, std::size_t buffer_size) noexcept;

}  // namespace devsan::hooks
