// Convolutions look at their operands before they choose a kernel.
#pragma once

namespace devsan::sim {

void register_convolution();

}  // namespace devsan::sim
