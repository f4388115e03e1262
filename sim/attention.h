// Flash and memory-efficient attention, as scaled_dot_product_attention takes them and context parallelism calls them.
#pragma once

namespace devsan::sim {

void register_attention();

}  // namespace devsan::sim
