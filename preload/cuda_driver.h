// What is asked of the CUDA driver: the questions of cuda_questions.def, which says why each is legal where it is
// asked.
#pragma once

#include <cstdint>

namespace devsan::cuda {

inline constexpr int kNoDevice = -1;

// What an address is for the driver.
enum class Placement : std::uint8_t {
  unknown,   // the driver cannot be asked
  pageable,  // host memory that it does not know
  pinned,    // host memory that it does
  device,    // or managed
};

// The context of the calling thread, and its device: 0 and kNoDevice without one.
struct Current {
  std::uint64_t context = 0;
  int device = kNoDevice;
};

// Takes the functions from the library that `function`, an entry point of the driver, belongs to. Any thread may call;
// of several drivers in a process the last one found counts.
void use_driver_of(const void* function) noexcept;

// What the library that `function` belongs to exports under `symbol`; null where it exports no such thing.
void* exported_beside(const void* function, const char* symbol) noexcept;

// After a call of the program that came back with `result` (CUresult or cudaError_t). Where it failed the device is
// that which the context had before, if it is known.
Current current_after(std::uint32_t result) noexcept;

// After a successful call. Unknown while a stream of the process is being captured.
Placement placement_of(std::uint64_t address) noexcept;
int device_of_memory(std::uint64_t address) noexcept;

// Bytes of a device's memory; 0 where that is not known, as before the first successful call and during a capture.
std::uint64_t capacity_of_device(int device) noexcept;

}  // namespace devsan::cuda
