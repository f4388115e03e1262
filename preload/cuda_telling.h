// Tells the hooks of CUDA's calls: what becomes of streams and events, and which copy a thread made last. Only where
// devices are real; simulated ones tell the hooks themselves.
#pragma once

#include <atomic>

#include "preload/cuda_journal.h"
#include "preload/cuda_streams.h"
#include "preload/hooks_abi.h"

namespace devsan::cuda {

// To be called once, before the hooks are loaded: where they leave what is called. Until then nobody is told.
void tell_through(const std::atomic<const DeviceWatch*>* watch) noexcept;

// A call is about to use a device in a process that does not record: has the hooks begin.
void begin_recording() noexcept;

// A call came back that succeeded and was not captured. `on` is the stream that it names; without one, the default
// stream of the device that was current.
void tell_hooks(const Observation& seen, StreamName on) noexcept;

// What the hooks ask. Lives as long as the process.
const DeviceCalls& device_calls() noexcept;

}  // namespace devsan::cuda
