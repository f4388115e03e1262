// Holds a spin lock for a few instructions of bookkeeping. Never around anything that can block or call back. A fork
// child may find the lock taken by a thread that it does not have, until it resets it: after kSpins the guard gives up,
// and the caller skips its work. A holder that is not running gets the processor before that: with more threads than
// processors it is waited for longer than spinning lasts.
#pragma once

#include <sched.h>

#include <atomic>

namespace devsan::hooks {

class SpinGuard {
 public:
  explicit SpinGuard(std::atomic_flag& lock) noexcept : lock_(lock) {
    for (int spin = 1; spin <= kSpins; ++spin) {
      held_ = !lock_.test_and_set(std::memory_order_acquire);
      if (held_) return;
      if (spin % kSpinsATurn == 0) ::sched_yield();
    }
  }
  ~SpinGuard() {
    if (held_) lock_.clear(std::memory_order_release);
  }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;
  bool held() const noexcept { return held_; }

 private:
  static constexpr int kSpins = 1 << 20;
  static constexpr int kSpinsATurn = 1 << 12;
  std::atomic_flag& lock_;
  bool held_ = false;
};

}  // namespace devsan::hooks
