// Device memory on pages of its own, which nobody may touch as long as no operator of the simulation works on it: a
// program that follows a device pointer on the host faults, as it does on hardware.
//
// Nothing is guarded unless it was asked for; then any thread may call any of these. What is said to be safe in a
// signal handler takes no lock and allocates nothing.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

#include <atomic>
#include <cstddef>
#include <utility>

namespace devsan::sim {

struct GuardedBlock;

namespace detail {
extern std::atomic<bool> pages_are_guarded;
GuardedBlock* open_pages(const void* memory) noexcept;
void close_pages(GuardedBlock* block) noexcept;
}  // namespace detail

// Called at most once, before the first allocation. Reserves address space for devices that hold `bytes` together;
// false where there is none to be had. `say` is told, once, of what ends the guarding later.
bool guard_device_pages(std::size_t bytes, void (*say)(const char* text)) noexcept;

inline bool pages_are_guarded() noexcept {
  return detail::pages_are_guarded.load(std::memory_order_relaxed);
}

// Guarded memory, zero; where the reserved space has no room it is the CPU allocator's, and not guarded. Raises what
// that does.
c10::DataPtr guarded_memory(std::size_t bytes, c10::DeviceIndex device);

// The same with the content of `host`, which is given up.
c10::DataPtr moved_to_guarded(c10::DataPtr host, std::size_t bytes, c10::DeviceIndex device);

// The block of guarded memory that an address lies in.
struct GuardedMemory {
  const void* begin;
  std::size_t bytes;
  c10::DeviceIndex device;
};

// Whether an address may be that of guarded memory, now or earlier. Safe in a signal handler.
bool is_guarded(const void* address) noexcept;
// False where the memory was given back. Safe in a signal handler.
bool find_guarded(const void* address, GuardedMemory* found) noexcept;

// The pages around `memory` may be touched, by any thread, as long as one of these lives. Other memory is left alone.
class OpenPages {
 public:
  explicit OpenPages(const void* memory) noexcept
      : block_(pages_are_guarded() ? detail::open_pages(memory) : nullptr) {}
  ~OpenPages() {
    if (block_ != nullptr) detail::close_pages(block_);
  }
  OpenPages(OpenPages&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  OpenPages(const OpenPages&) = delete;
  OpenPages& operator=(const OpenPages&) = delete;

 private:
  GuardedBlock* block_;
};

}  // namespace devsan::sim
