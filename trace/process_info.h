// What a trace's header says about its process.
#pragma once

#include <array>
#include <cstdint>

#include "trace/job_place.h"

namespace devsan::trace {

struct ProcessInfo {
  std::uint32_t pid = 0;
  std::uint32_t parent_pid = 0;
  JobPlace place;
  std::int64_t start_time_ns = 0;
  std::uint64_t start_ticks = 0;  // 0 where /proc is not to be had
  std::array<char, 64> host{};
};

ProcessInfo this_process() noexcept;

// When that process started, in clock ticks since boot; 0 where there is none, or /proc is not to be had.
std::uint64_t start_ticks_of(std::uint32_t pid) noexcept;

}  // namespace devsan::trace
