// What a backward function returned while autograd's engine checks it: devices of gradients that are not those of the
// values they belong to make the engine raise outside of any operator.
#pragma once

#include "hooks/inprocess/common/thread_state.h"
#include "hooks/torch_bridge/operand_list.h"

namespace devsan::hooks {

// Adds the gradients that the engine is checking on this thread and that lie on another device than wanted, each with
// the device that is wanted. Does nothing outside of such a check.
void add_checked_gradients(const ThreadState& state, OperandList& operands) noexcept;

}  // namespace devsan::hooks
