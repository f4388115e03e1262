// Memory of the simulated devices, and pinned host memory. Device memory is ordinary host memory that is accounted for:
// each device has a size, running out of it raises PyTorch's OutOfMemoryError, and the statistics count real requests.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/StorageImpl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace devsan::sim {

// Allocates on the calling thread's current device.
c10::DeviceAllocator* device_allocator();

// Makes host memory of `bytes` bytes, the result of an operator that ran on the CPU, memory of `device`.
c10::DataPtr adopt_host_memory(c10::DataPtr host, std::size_t bytes, c10::DeviceIndex device);

// Gives a storage of a device `bytes` bytes, and keeps of its content what these hold. Raises what PyTorch raises for
// one that cannot be resized.
void resize_storage(c10::StorageImpl& storage, std::size_t bytes);

// The device that `pointer` points into; nothing where it is no device memory.
std::optional<c10::DeviceIndex> device_of_pointer(const void* pointer);

c10::Allocator* pinned_allocator();
void count_pinned_in(std::atomic<std::uint64_t>* bytes);  // to be called before anything is pinned
bool is_pinned(const void* pointer);
std::size_t pinned_bytes_at(const void* block);  // that begins there; 0 where none does

// Makes the allocator PyTorch's allocator of CUDA memory.
void register_allocator();

}  // namespace devsan::sim
