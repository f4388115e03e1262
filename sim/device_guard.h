// Selecting devices, streams and events, as c10 asks for them.
#pragma once

namespace devsan::sim {

// Makes the simulation answer for device type CUDA.
void register_device_guard();

}  // namespace devsan::sim
