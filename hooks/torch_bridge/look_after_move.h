// The look at where the program keeps its tensors that a move within a step asks for (events/moves.h).
#pragma once

#include "hooks/inprocess/common/thread_state.h"

namespace devsan::hooks {

// An outermost operator is about to run, and a look is wanted. `caller`: where the operator returns to.
[[gnu::cold]] void look_after_move(ThreadState& state, const void* caller) noexcept;

}  // namespace devsan::hooks
