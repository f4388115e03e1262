// Whether compiled hooks can be loaded beside the torch at hand. Runs inside the traced process as well: no memory from
// the heap, no exceptions.
#pragma once

#include "trace/fixed_text.h"

namespace devsan {

using Reason = FixedText<1024>;

// Both libraries of the folder (that of the simulation may be missing) are whole, and what they need of torch is
// exported by the libraries in `torch_libraries`. Otherwise `why` gets half a sentence: "libdevsan_torch.so is not
// whole".
bool hooks_fit(const char* directory, const char* torch_libraries, Reason* why) noexcept;

// The same without a look at torch.
bool hooks_are_whole(const char* directory, Reason* why) noexcept;

bool has_simulation(const char* directory) noexcept;

}  // namespace devsan
