// A generator takes its state from a tensor on the host, whatever device it makes numbers for. One on another device is
// refused outside of any operator, by an error that speaks of its type alone.
#pragma once

#include "hooks/inprocess/common/thread_state.h"
#include "hooks/torch_bridge/operand_list.h"

namespace devsan::hooks {

// Whether this thread is setting a generator's state from a tensor that is not on the host.
bool takes_state_from_device(const ThreadState& state) noexcept;

// Adds that tensor, and the device that is wanted. Does nothing otherwise.
void add_generator_state(const ThreadState& state, OperandList& operands) noexcept;

}  // namespace devsan::hooks
