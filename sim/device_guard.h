// Selecting devices, streams and events, as c10 asks for them.
#pragma once

#include <c10/core/Device.h>

#include <atomic>

#include "preload/hooks_abi.h"

namespace devsan::sim {

// Makes the simulation answer for device type CUDA, and tells `device_watch` what becomes of streams and events, and of
// failures.
void register_device_guard(std::atomic<const DeviceWatch*>* device_watch);

// An error with this text is about to be thrown.
void tell_fails(const char* message);

// What a collective has returned, a c10d::Work, has come to its end.
void tell_work_ended(const void* work);

// The host waited for everything on a device.
void tell_host_saw_device(c10::DeviceIndex device);

}  // namespace devsan::sim
