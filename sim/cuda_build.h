// What is different where torch was built with CUDA: its CUDA kernels are there, and none of them may run.
#pragma once

namespace devsan::sim {

// Puts kernels of the simulation over all that libtorch_cuda.so has registered. To be called before the simulation
// registers anything else; does nothing in a torch without CUDA.
void cover_cuda_kernels();

}  // namespace devsan::sim
