// The calls that led to an operator, outwards from the function that the site's user line stands in: who asked a helper
// for a tensor, or to move one. Written for the steps that bring a value to its device; the others have their
// operands'.
#pragma once

#include <cstdint>

#include "hooks/inprocess/common/often_read.h"
#include "hooks/inprocess/common/thread_state.h"

namespace devsan::hooks {

// The number of the innermost of these calls, as trace::LineageNode::calls has it, for the operator that the calling
// thread is in; 0 where there is none, or the trace is full.
DEVSAN_OFTEN_RUN std::uint32_t callers(const ThreadState& state) noexcept;

}  // namespace devsan::hooks
