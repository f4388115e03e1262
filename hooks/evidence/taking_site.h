// The loop that takes numbers out of a tensor one by one, each of which the host then waits for. Reads source files
// alone, so that it needs no interpreter.
#pragma once

#include "trace/file_layout.h"

namespace devsan::hooks {

// The `for` statement around an operator that uses a variable of it as it is, where that goes through something else
// than what is on the host for sure. None without one. Never throws.
trace::SiteId loop_site(trace::SiteId site) noexcept;

}  // namespace devsan::hooks
