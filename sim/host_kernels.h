// Kernels for operators that PyTorch has for CUDA alone: they take and give CPU tensors, and the fallback runs them
// where it would run the CPU's own.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace devsan::sim {

// To be called before the first operator runs. `name` includes the overload: "aten::mm.dtype".
void add_host_kernel(const char* name, c10::KernelFunction kernel);

// Null for an operator without one.
const c10::KernelFunction* find_host_kernel(const c10::OperatorHandle& op);

}  // namespace devsan::sim
