// The trace's numbers for devices.
#pragma once

#include <atomic>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// Implemented beside torch's headers, which know what a device is called.
[[gnu::cold]] trace::DeviceSlot intern_device(DeviceKey device) noexcept;

// The trace's number for a device, none for no device; interned when it is first seen.
inline trace::DeviceSlot device_slot(DeviceKey device) noexcept {
  const trace::DeviceSlot slot = large_page->device_slots[device & 0xffff].load(std::memory_order_relaxed);
  return slot != trace::DeviceSlot::none || device == 0 ? slot : intern_device(device);
}

}  // namespace devsan::hooks
