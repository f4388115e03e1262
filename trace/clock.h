// The system's clocks in nanoseconds, as every time in a trace is given. Async-signal-safe.
#pragma once

#include <time.h>

#include <cstdint>

namespace devsan::trace {

inline std::int64_t clock_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline std::int64_t wall_clock_ns() noexcept {
  return clock_ns(CLOCK_REALTIME);
}

}  // namespace devsan::trace
