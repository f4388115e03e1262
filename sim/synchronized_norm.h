// The operators of which nn.SyncBatchNorm is made; PyTorch has them for CUDA only.
#pragma once

namespace devsan::sim {

void register_synchronized_norm();

}  // namespace devsan::sim
