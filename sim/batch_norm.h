// On hardware cuDNN runs most batch normalizations, with checks of its own.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace devsan::sim {

void register_batch_norm();

// Whether this thread is in a batch normalization that cuDNN would run on hardware: the operator that PyTorch calls for
// it has another name.
bool is_cudnn_batch_norm() noexcept;

// What the kernels for CUDA say of the shapes of operands that the CPU's take.
void check_native_batch_norm(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments);
void check_batch_norm_with_update(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments);

}  // namespace devsan::sim
