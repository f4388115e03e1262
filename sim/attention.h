// Flash and memory-efficient attention called by name, as context parallelism calls them. What chooses between them,
// scaled_dot_product_attention, chooses the composite formula on simulated devices.
#pragma once

namespace devsan::sim {

void register_attention();

}  // namespace devsan::sim
