// What the wrappers ask the CUDA driver about a call that has just succeeded. Only functions that change nothing, leave
// no error behind, and are allowed while a stream is being captured.
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

// Takes the functions from the library that `function`, an entry point of the driver, belongs to. Any thread may call;
// of several drivers in a process the last one found counts.
void use_driver_of(const void* function) noexcept;

// What the library that `function` belongs to exports under `symbol`; null where it exports no such thing.
void* exported_beside(const void* function, const char* symbol) noexcept;

std::uint64_t current_context() noexcept;  // of the calling thread; 0 without one
int current_device() noexcept;             // kNoDevice without one

// `stream` as the call was given it; `per_thread` says what its default stream is.
int device_of_stream(std::uint64_t stream, bool per_thread) noexcept;
bool is_capturing(std::uint64_t stream, bool per_thread) noexcept;

int device_of_memory(std::uint64_t address) noexcept;
Placement placement_of(std::uint64_t address) noexcept;

}  // namespace devsan::cuda
