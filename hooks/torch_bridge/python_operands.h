// The tensors of what torch's Python bindings refuse by themselves, outside of any operator: to make an array of NumPy
// of a tensor on an accelerator, and to give a parameter a gradient on another device. No function that could be
// replaced has them in hand; they are read from the source of the line and from the frame's variables.
#pragma once

#include <string_view>

#include "hooks/inprocess/common/thread_state.h"
#include "hooks/torch_bridge/operand_list.h"

namespace devsan::hooks {

// Adds them, where `message` is such a complaint and they are found: one that no variable leads to by the text of its
// expression alone. With the GIL (PythonSection), on the thread that is about to raise.
void add_python_operands(const ThreadState& state, std::string_view message, const void* thread,
                         OperandList& operands) noexcept;

}  // namespace devsan::hooks
