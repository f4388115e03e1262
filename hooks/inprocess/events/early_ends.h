// Ends of a device's work that are heard of before anybody knows whose they are.
#pragma once

#include <atomic>
#include <cstddef>

namespace devsan::hooks {

// Events that were found complete before anybody knew which collective ends by them: a watchdog on another thread may
// ask between the event's record and the return of the call. Lossy; only kept while a call is on its way.
class EarlyEnds {
 public:
  void begin() noexcept { calls_.fetch_add(1, std::memory_order_relaxed); }
  void end() noexcept { calls_.fetch_sub(1, std::memory_order_relaxed); }
  // What was heard of the event before is about earlier work.
  void forget(const void* event) noexcept;
  void note(const void* event) noexcept;
  bool has(const void* event) const noexcept;
  void clear() noexcept;

 private:
  static constexpr std::size_t kEvents = 256;

  std::atomic<int> calls_{0};
  std::atomic<const void*> events_[kEvents]{};
};

}  // namespace devsan::hooks
