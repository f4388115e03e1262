// Keys of RunInfo records that the report looks for.
#pragma once

#include <string_view>

namespace devsan::trace {

// How many process groups still existed when the program had run to its end; not written where it had destroyed them,
// or ended otherwise.
inline constexpr std::string_view kGroupsLeftKey = "process_groups_at_exit";

}  // namespace devsan::trace
