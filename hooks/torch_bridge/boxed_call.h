// Operators that are called past at::_ops::X::call: from Python by torch.ops, by TorchScript's interpreter, by C++ with
// a handle of the dispatcher. All of them pass the front of the dispatcher, which asks for the profiler's callbacks
// there; outside every wrapped operator it gets one more, and that sees the operator's schema, arguments and results.
// libtorch_cpu's own dispatcher is only watched once a program makes such calls (boxed_demand.cpp).
#pragma once

#include "hooks/inprocess/common/thread_state.h"
#include "hooks/torch_bridge/boxed_operands.h"
#include "hooks/torch_bridge/operand_list.h"

namespace devsan::hooks {

// Once, at attach: where a torch lacks a function that such calls begin with, all are watched from the start.
void start_boxed_demand() noexcept;

// An operator inside a custom operator's kernel was refused with these operands. Whether the custom operator, or the
// function of a group (group_calls.h), was given all of them: then it is the custom operator's finding, under the names
// that its caller knows them by.
bool came_with_boxed_call(const ThreadState& state, const OperandList& operands) noexcept;

// A call of an operator that Python makes past the dispatcher (python_dispatch.cpp): seen by whoever makes this around
// it, on one thread and with the GIL, and otherwise as one of those above. One of the last two is to follow; a thread
// that is ended on the spot comes to neither.
class BoxedPythonCall {
 public:
  BoxedPythonCall(const c10::FunctionSchema& schema, BoxedArguments arguments) noexcept;
  BoxedPythonCall(const BoxedPythonCall&) = delete;
  BoxedPythonCall& operator=(const BoxedPythonCall&) = delete;

  void returned(c10::ArrayRef<c10::IValue> results) noexcept;
  void failed() noexcept;  // the interpreter has the exception
};

}  // namespace devsan::hooks
