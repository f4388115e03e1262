// The fused recurrent cells, which PyTorch has for CUDA only. Without cuDNN nn.LSTM, nn.GRU and their cells use them.
#pragma once

namespace devsan::sim {

void register_recurrent_cells();

}  // namespace devsan::sim
