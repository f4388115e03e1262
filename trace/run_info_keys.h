// Keys of RunInfo records that the report looks for.
#pragma once

#include <string_view>

namespace devsan::trace {

// How many process groups were there when the interpreter had run the program to its end: none is written where the
// program had destroyed them, or ended otherwise.
inline constexpr std::string_view kGroupsLeftKey = "process_groups_at_exit";

}  // namespace devsan::trace
