// Runs operators of simulated devices on the CPU.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace devsan::sim {

// A boxed kernel for the CUDA dispatch key: checks the operands' devices as CUDA's kernels do, and then runs the CPU
// kernel on the same memory.
void run_on_host(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// The same for an operator with checks of its own, which come after those of the devices.
using ArgumentCheck = void (*)(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments);
void run_on_host_after(ArgumentCheck check, const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                       torch::jit::Stack* stack);

// Makes run_on_host the CUDA kernel of every operator that has none. Kernels of our own are registered after it.
void register_fallback();

}  // namespace devsan::sim
