// What the ranks of a job leave for each other when they fail: a small file of each in the run's directory. So rank 0,
// whose output is the one that people look at, can say who failed first.
#pragma once

#include <cstdint>
#include <string_view>

namespace devsan::hooks {

// A process group was made: of the largest, which is that of all ranks, the process keeps its rank.
void note_rank(int rank, int size) noexcept;

struct OwnFailure {
  std::int64_t time_ns;
  std::uint32_t step;
  std::string_view type;      // "ValueError"
  std::string_view message;   // one line
  bool message_is_arguments;  // "('lr', 3)"
  bool from_collective;       // another rank may be behind it
};

// Does nothing where the process is the only rank. Rank 0 then says on stderr which rank failed before it, if one did.
void tell_other_ranks(const OwnFailure& failure) noexcept;

}  // namespace devsan::hooks
