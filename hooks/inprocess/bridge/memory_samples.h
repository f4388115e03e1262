// Looks at the memory of the process and of its devices, from iteration to iteration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hooks/inprocess/bridge/tensor_facts.h"

namespace devsan::hooks {

// As the device's allocator in PyTorch counts: in tensors, and taken from the device. 0 where it cannot be asked.
struct DeviceBytes {
  std::uint64_t allocated = 0;
  std::uint64_t reserved = 0;
};
DeviceBytes device_bytes(DeviceKey device) noexcept;

// The same of every device that was ever used, and the most that has been in tensors of it.
struct DeviceUse {
  trace::DeviceSlot device = trace::DeviceSlot::none;
  DeviceBytes bytes;
  std::uint64_t peak = 0;
};
// As many as there is room for; none where the allocators cannot be asked.
std::size_t devices_in_use(std::span<DeviceUse> uses) noexcept;

// Of the process itself: what is resident of it, less what is of files or shared. 0 where it cannot be read. Asks the
// kernel, and leaves errno as it was.
std::uint64_t own_bytes() noexcept;

// To be called when an iteration begins, on any thread, outside of every allocator; looks at most some fifty times a
// second.
void sample_memory(std::uint32_t step) noexcept;

// To be called when this line moves data between the host and a device, or waits for one; as above. Where no backward
// ends iterations, in an evaluation, how often one line does so counts its rounds.
void note_round(trace::SiteId site) noexcept;

// To be called once: a child that is forked while devices are in use has none of their memory.
void watch_memory_over_forks() noexcept;

}  // namespace devsan::hooks
