// Which hooks a torch gets. `devsan` and libdevsan.so ask the same function, so that they choose alike. It runs inside
// the traced process as well: no memory from the heap, no exceptions.
#pragma once

#include "preload/hooks_cache.h"
#include "preload/torch_identity.h"

namespace devsan {

// The places in which hooks are looked for, in this order.
enum class HooksPlace {
  none,
  given,  // a folder that DEVSAN_HOOKS_PATH names, laid out as a cache
  slot,   // of the installation: compiled beforehand for a release of torch
  cache,
};

struct HooksChoice {
  HooksPlace place = HooksPlace::none;
  FixedPath directory;  // that the libraries lie in
  TorchIdentity torch;
  bool torch_is_too_old = false;  // nothing was looked for
  HooksState cached = HooksState::missing;
  HooksLocation
      cache{};  // the key; and where the hooks are, or would be, in the cache, when they were looked for there
};

// Gets one sentence about hooks that are passed over, and why.
struct Complaints {
  void (*tell)(const char* sentence, void* context);
  void* context;
};

// `own_libraries` is the folder of libdevsan.so; empty where it is not known.
void choose_hooks(const char* libtorch_cpu, const char* own_libraries, const Complaints& complaints,
                  HooksChoice* choice) noexcept;

// "DEVSAN_HOOKS_PATH", "slot", "cache"; "none"
const char* name_of(HooksPlace place) noexcept;

}  // namespace devsan
