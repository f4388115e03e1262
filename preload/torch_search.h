// Looks for torch among the objects of the process, and for whose code is asking.
#pragma once

#include <link.h>

#include <cstddef>

#include "trace/fixed_text.h"

namespace devsan {

struct TorchSighting {
  FixedText<4096> library;     // path of libtorch_cpu.so; empty when it is not there
  std::size_t objects = 0;     // in the process
  std::size_t code_index = 0;  // of the object that holds the code asked for, in the order of loading
  bool code_found = false;
  bool code_uses_torch = false;  // that object is linked with torch, and does not lie beside it
};

// How often objects were added and removed so far: two walks with equal counts saw the same objects.
struct LoaderCounts {
  unsigned long long added = 0;
  unsigned long long removed = 0;
  bool operator==(const LoaderCounts&) const = default;
};

LoaderCounts loader_counts() noexcept;
TorchSighting look_for_torch(const void* code) noexcept;

// Whether `handle` is of an object that is linked with torch, be it by way of others. False for the special handles.
bool leads_to_torch(const void* handle) noexcept;

}  // namespace devsan
