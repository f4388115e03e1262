// Selecting devices, streams and events, as c10 asks for them.
#pragma once

#include <c10/core/Device.h>

#include <atomic>

#include "preload/hooks_abi.h"

namespace devsan::sim {

// Makes the simulation answer for device type CUDA, and tells `stream_watch` what becomes of streams and events.
void register_device_guard(std::atomic<const StreamWatch*>* stream_watch);

// The host waited for everything on a device.
void tell_host_saw_device(c10::DeviceIndex device);

}  // namespace devsan::sim
