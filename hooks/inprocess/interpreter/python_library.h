// Functions of libtorch_python, which the hooks do not link: a program without Python does not have it.
#pragma once

#include <atomic>

namespace devsan::hooks {

void* find_in_python_library(const char* name) noexcept;

// Replaced by its name (Replacement::by_name). Found at the first call: whoever calls it has its library loaded.
template <class Function>
class PythonLibraryFunction {
 public:
  explicit constexpr PythonLibraryFunction(const char* name) noexcept : name_(name) {}

  Function* get() noexcept {
    void* found = found_.load(std::memory_order_relaxed);
    if (found == nullptr) found_.store(found = find_in_python_library(name_), std::memory_order_relaxed);
    return reinterpret_cast<Function*>(found);
  }

 private:
  const char* name_;
  std::atomic<void*> found_{nullptr};
};

}  // namespace devsan::hooks
