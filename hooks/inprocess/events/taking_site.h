// The line that takes numbers out of a tensor one by one, each of which the host then waits for. Reads source files
// alone, so that it needs no interpreter.
#pragma once

#include <span>

#include "trace/file_layout.h"

namespace devsan::hooks {

// Of an operator that waits at `site` for its first operand: the `for` statement around, where it uses a variable of
// that as it is, and that goes through something else than what is on the host for sure; or the only assignment above
// that gives a variable, used as it is, an element of a tensor: `start, end = offsets[k], offsets[k + 1]`. None without
// one. Never throws.
trace::SiteId taking_site(trace::SiteId site, std::span<const trace::OperandRecord> operands) noexcept;

}  // namespace devsan::hooks
