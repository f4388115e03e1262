// Operators whose CUDA kernels take dtypes that the CPU's refuse: they run on the CPU in a wider dtype, which is also
// what CUDA's kernels compute in, and their results are rounded to the operands' dtype.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>

namespace devsan::sim {

void register_wider_dtypes();

// The dtype in which a CPU kernel is to compute for these CPU operands, if it is not their own.
std::optional<at::ScalarType> wider_dtype(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// Calls the CPU's kernel of `key` with the operands of the first one's dtype in `wide` instead.
void call_in(at::ScalarType wide, const c10::OperatorHandle& op, c10::DispatchKeySet key, torch::jit::Stack* stack);

}  // namespace devsan::sim
