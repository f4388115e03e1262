// What ATen asks of CUDA at run time.
#pragma once

namespace devsan::sim {

// Must run before ATen's first question: it asks the registry once.
void register_cuda_hooks();

}  // namespace devsan::sim
