// Matrix products of half-precision numbers with a result of float32 (`out_dtype`), which PyTorch has for CUDA only.
#pragma once

namespace devsan::sim {

void register_wide_products();

}  // namespace devsan::sim
