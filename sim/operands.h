// The tensors of one call of an operator, as CUDA's checks see them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <string_view>
#include <vector>

namespace devsan::sim {

// A defined tensor of the call, and the argument that it came in.
struct Operand {
  const c10::Argument* argument;
  at::Tensor tensor;
};

struct Call {
  const c10::OperatorHandle& op;
  at::ArrayRef<c10::IValue> arguments;
  std::vector<Operand> operands;  // outputs before inputs, as CUDA's checks see them
};

Call call_of(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments);

bool is_written(const c10::Argument& argument);
bool is_output(const c10::Argument& argument);

// Null for an argument that was not given, or that the operator does not have.
const at::Tensor* find_operand(const std::vector<Operand>& operands, std::string_view argument);
const c10::IValue* find_argument(const c10::FunctionSchema& schema, at::ArrayRef<c10::IValue> arguments,
                                 std::string_view argument);

inline bool is_number(const at::Tensor& tensor) {
  return tensor.dim() == 0;
}

// Runs the CPU's kernel on copies of the operands, for what it says of their shapes.
void raise_errors_of_shape(const Call& call);

}  // namespace devsan::sim
