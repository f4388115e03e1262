// Which run a process belongs to: one call of `devsan run`, or one tree of processes that devsan was preloaded into.
#pragma once

#include "preload/out_directory.h"
#include "trace/recorder.h"

namespace devsan {

// `given` is the option `run`. Without it the run is that of the nearest ancestor with a trace, or else is named after
// the topmost process of the tree. A launcher that starts processes in several such trees, as on several nodes, gives
// each of them the same words in the environment: their digest is the rendezvous. The words themselves are not kept.
trace::RunIdentity run_identity(const char* given, const Ancestry& ancestry) noexcept;

}  // namespace devsan
