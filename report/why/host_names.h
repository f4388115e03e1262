// What a program says by the names it gives.
#pragma once

#include <string_view>

#include "report/finding.h"

namespace devsan::report::why {

// Whether one of the words of a name, which `_` and `.` part, is "cpu" or "host": what goes by it is meant to be there.
bool says_host(std::string_view name);

// Whether a name is that of another one's copy on an accelerator: "labels_cuda" of "labels", "d_scale" of "scale".
bool says_accelerator(std::string_view name, std::string_view original);

// `.to(state["storage"])`, `.to(offload_device)`: whether what a line moves goes to a device that is named for keeping
// things.
bool moves_to_store(const Frame& place);

}  // namespace devsan::report::why
