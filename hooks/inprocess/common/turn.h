// For work that one thread at a time does, and that is not worth a wait.
#pragma once

#include <atomic>

namespace devsan::hooks {

// Whoever comes while another thread works goes on without. So does every child of a fork that came in between.
class Turn {
 public:
  explicit Turn(std::atomic_flag& in_use) noexcept
      : in_use_(in_use), taken_(!in_use.test_and_set(std::memory_order_acquire)) {}
  ~Turn() {
    if (taken_) in_use_.clear(std::memory_order_release);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool taken() const noexcept { return taken_; }

 private:
  std::atomic_flag& in_use_;
  const bool taken_;
};

}  // namespace devsan::hooks
