// Kernels for operators that PyTorch has for CUDA alone: they take and give CPU tensors, and the fallback runs them
// where it would run the CPU's own.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace devsan::sim {

// To be called before the first operator runs. `name` includes the overload: "aten::mm.dtype".
void add_host_kernel(const char* name, c10::KernelFunction kernel);

// `function` is TORCH_FN of a function with the operator's C++ signature.
template <class Function>
void add_host_kernel(const char* name, Function function) {
  add_host_kernel(name, c10::KernelFunction::makeFromUnboxedFunction(function));
}

// Null for an operator without one.
const c10::KernelFunction* find_host_kernel(const c10::OperatorHandle& op);

inline bool is_there(const std::optional<at::Tensor>& operand) {
  return operand && operand->defined();
}

// Half-precision numbers as float32, in which CUDA's kernels compute with them; others as they are.
at::Tensor widened(const at::Tensor& operand);
// Undefined for an operand that is missing.
at::Tensor widened(const std::optional<at::Tensor>& operand);

}  // namespace devsan::sim
