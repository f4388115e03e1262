// Decides where this process's trace goes.
#pragma once

#include <cstddef>

#include "trace/fixed_text.h"

namespace devsan {

using PathText = FixedText<4096>;

// What the processes above this one tell.
struct Ancestry {
  PathText trace;                // of the nearest ancestor that has one; empty where none has
  PathText directory;            // that it lies in
  bool another_started = false;  // one of them has torch and devsan in it, and has said what there was to say
  int root = 0;                  // the topmost that devsan was preloaded into; 0 where there is none
};

Ancestry look_at_ancestors() noexcept;

// Absolute. `wanted` is the option `out`, which may be empty or relative.
PathText choose_directory(const char* wanted, const Ancestry& ancestry) noexcept;

// The directory and those above it, 0700. False (and errno) when it is not there afterwards.
bool make_directories(const char* path) noexcept;

}  // namespace devsan
