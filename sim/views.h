// Operators of simulated devices that make, move or look at memory without computing in it.
#pragma once

namespace devsan::sim {

void register_views();

}  // namespace devsan::sim
