// What the kernels for CUDA say of their operands' shapes, where the CPU's say otherwise.
#pragma once

namespace devsan::sim {

// To be called after register_fallback.
void register_kernel_shapes();

}  // namespace devsan::sim
