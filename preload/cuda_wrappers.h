// Puts wrappers before the listed calls of CUDA's driver and runtime, wherever the program gets their addresses from. A
// wrapper passes on what it is given and returns what it got, and records what came of the outermost call: a call of
// the driver inside one of the runtime is part of that.
//
// All of it works before torch is there, since a library that has asked for an address keeps it; what is called then is
// passed on and not recorded.
#pragma once

#include "preload/elf_image.h"

namespace devsan::cuda {

// Both are thread-safe; they ask the loader which object an address belongs to.

// The function to give to a program in place of `real`, which it found under `symbol`: a wrapper, or `real` itself
// where the name is not listed.
void* in_place_of(const char* symbol, void* real) noexcept;

// For a slot of `object` that names `symbol` and is not bound yet: finds what it will be bound to. Null where that is
// not certain.
void* in_place_of_unbound(const char* symbol, const ElfImage& object) noexcept;

}  // namespace devsan::cuda
