// Operators whose kernels PyTorch keeps otherwise for CUDA than for the CPU.
#pragma once

namespace devsan::sim {

// What the CPU has and CUDA has not raises as on hardware. To be called after register_fallback.
void register_kernel_presence();

}  // namespace devsan::sim
