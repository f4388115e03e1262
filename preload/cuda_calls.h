// What devsan knows of the calls in cuda_calls.def. No CUDA header is needed to build it: an argument is a machine
// word, and all that is told of a call is which word is what.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trace/memory_layout.h"

namespace devsan::cuda {

using trace::CopyDirection;
using trace::DeviceCallKind;
using trace::MemorySpace;

// Of an entry point of the driver: which meaning it gives to the default stream. `none`: it takes no stream.
enum class StreamMode : std::uint8_t { none, legacy, ptds, ptsz };

// How the call says what it is about, beyond single words.
enum class Shape : std::uint8_t {
  words,        // by the words that Arguments names
  pitched,      // the bytes are *pitch * rows
  rectangle,    // the bytes are width * rows
  copy_2d,      // a CUDA_MEMCPY2D, which `address` points to
  copy_3d,      // the same for a CUDA_MEMCPY3D, or a CUDA_MEMCPY3D_PEER
  entry_point,  // it gives a function of the driver
};

// Which word of the arguments is what; -1: none is.
struct Arguments {
  int out = -1;      // points to where the address or the handle of what was allocated is stored
  int address = -1;  // of what is freed, mapped, copied to, waited for
  int source = -1;   // of a copy
  int bytes = -1;
  int rows = -1;
  int pitch = -1;  // points to the bytes of a row, stored by the call
  int stream = -1;
  int handle = -1;      // of physical memory that is mapped
  int properties = -1;  // points to a CUmemAllocationProp
  int how = -1;         // a cudaMemcpyKind
  int context = -1;     // that is waited for
  int flags = -1;       // of a stream that is made
  Shape shape = Shape::words;
  MemorySpace space = MemorySpace::none;
  CopyDirection direction = CopyDirection::none;
  bool async = false;
  bool opaque = false;    // what is allocated or freed is a handle of physical memory
  bool on_stack = false;  // some of the arguments are passed on the stack
};

struct Call {
  const char* symbol;  // as the library exports it
  const char* base;    // as cuGetProcAddress is asked for it
  int since;           // version of CUDA whose header first named this entry point
  StreamMode mode;
  bool runtime;  // of the runtime, not of the driver
  DeviceCallKind kind;
  Arguments arguments;
};

enum class CallId : std::uint16_t {
#define DEVSAN_CUDA_CALL(symbol, base, since, mode, kind, ...) symbol,
#define DEVSAN_CUDA_RUNTIME_CALL(symbol, mode, kind, ...) symbol,
#include "preload/cuda_calls.def"
#undef DEVSAN_CUDA_CALL
#undef DEVSAN_CUDA_RUNTIME_CALL
  count
};

inline constexpr std::size_t kCallCount = static_cast<std::size_t>(CallId::count);

inline constexpr std::array<Call, kCallCount> kCalls = {{
#define DEVSAN_CUDA_CALL(symbol, base, since, mode, kind, ...) \
  {#symbol, #base, since, StreamMode::mode, false, DeviceCallKind::kind, {__VA_ARGS__}},
#define DEVSAN_CUDA_RUNTIME_CALL(symbol, mode, kind, ...) \
  {#symbol, "", 0, StreamMode::mode, true, DeviceCallKind::kind, {__VA_ARGS__}},
#include "preload/cuda_calls.def"
#undef DEVSAN_CUDA_CALL
#undef DEVSAN_CUDA_RUNTIME_CALL
}};

constexpr const Call& call_of(CallId id) {
  return kCalls[static_cast<std::size_t>(id)];
}

// The newest CUDA whose headers the list was compared with. What a later one gives for a name may take other arguments.
inline constexpr int kKnownVersion = 13000;

// Whether a name may be that of a listed call; cheap, since every symbol that the program looks for is asked about.
inline bool may_be_call(const char* name) noexcept {
  return name != nullptr && name[0] == 'c' && name[1] == 'u';
}

// By the name that a library exports; CallId::count where it is not listed.
CallId find_call(const char* symbol) noexcept;

// What the driver gives for `base` to a program that was built with `version` and wants that stream mode; CallId::count
// where that is not listed, or is older than the list. Of a CUDA newer than kKnownVersion it is a guess.
CallId find_entry_point(const char* base, int version, bool per_thread_streams) noexcept;

}  // namespace devsan::cuda
