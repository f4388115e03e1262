// Keys of RunInfo records that the report looks for.
#pragma once

#include <string_view>

namespace devsan::trace {

// How many process groups still existed when Python's interpreter began to end; not written where the process had
// entered none, or ended otherwise.
inline constexpr std::string_view kGroupsLeftKey = "process_groups_at_exit";

}  // namespace devsan::trace
