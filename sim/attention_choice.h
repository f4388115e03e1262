// Which kernel scaled_dot_product_attention takes for tensors of a simulated device: PyTorch asks CUDA's side.
#pragma once

namespace devsan::sim {

// Takes the place of the answer of a torch that was built with CUDA.
void register_attention_choice();

}  // namespace devsan::sim
