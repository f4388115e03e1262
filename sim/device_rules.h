// Which mixtures of devices an operator of real CUDA refuses, and in what words.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace devsan::sim {

enum class Verdict {
  run,            // the operator takes these operands
  run_composite,  // its composite kernel decides: run_composite_kernel
};

// For operands that are not all on one device. Raises what CUDA's kernel of `op` raises, for dense tensors, or for
// those of another functionality: Sparse, SparseCsr, NestedTensor, Quantized.
Verdict check_operand_devices(const c10::OperatorHandle& op, c10::DispatchKey functionality,
                              at::ArrayRef<c10::IValue> arguments);

// The check of CUDA's wrapper alone, for an operator of dense tensors that has no meta function.
void check_wrapper(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments);

// Runs the kernel that PyTorch generates for the functional and in-place forms of a structured operator: it calls the
// operator's meta function, whose checks are PyTorch's own, and then the `out` form.
void run_composite_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Whether `op` is the functional or in-place form of a structured operator: one whose checks PyTorch keeps in a meta
// function apart from its kernels.
bool is_structured(const c10::OperatorHandle& op);

}  // namespace devsan::sim
