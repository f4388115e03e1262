// The process groups that collectives were entered in.
#pragma once

#include <cstdint>

namespace devsan::hooks {

struct GroupTurn {
  std::uint32_t group = 0;  // its number in the trace; 0: there is no room for it
  std::uint64_t sequence = 0;
  bool tells_end = false;  // on the host: its backend calls Work::finish()
};

// A collective enters the group (a c10d::ProcessGroup); its number there counts up unless it is point-to-point. The
// first one of a group asks torch for the group's name and ranks, all others take no lock.
GroupTurn enter_group(const void* group, bool point_to_point) noexcept;

// A group is made at this address: what was known of one there before is of no use any more.
void group_is_made(const void* group) noexcept;

// Whether a collective entered a group in this process.
bool has_entered_groups() noexcept;

// In a child of a fork, before it records.
void reset_groups_after_fork() noexcept;

}  // namespace devsan::hooks
