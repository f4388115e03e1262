// The function that a program would have got had libdevsan.so not been there: the next one of that name in the order in
// which the loader searches, so that interposers preloaded after us still get their turn. Found without dlsym, because
// dlsym is one of them.
#pragma once

#include <atomic>

namespace devsan {

class RealSymbol {
 public:
  explicit constexpr RealSymbol(const char* name) noexcept : name_(name) {}

  // Null where no object of the process defines it. Safe in any thread, in a signal handler once it was found.
  void* address() noexcept {
    void* found = address_.load(std::memory_order_acquire);
    return found != nullptr ? found : find();
  }

  template <typename Function>
  Function* as() noexcept {
    return reinterpret_cast<Function*>(address());
  }

 private:
  void* find() noexcept;

  const char* name_;
  std::atomic<void*> address_{nullptr};
};

}  // namespace devsan
