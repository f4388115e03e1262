// What the hooks know of the process they are in. Filled by devsan_hooks_attach before any wrapper is in place; what
// Python brings may come later (interpreter/python_start.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/hooks_abi.h"

namespace devsan::hooks {

// What an iteration begins after: the first forward operator after a backward, or the first of all.
enum class Pass : std::uint8_t { none, forward, backward };

// The first cache line is what every outermost operator reads.
struct alignas(64) Runtime {
  const trace::EpochPage* epoch_page = nullptr;
  std::atomic<std::uint32_t> step{0};  // iteration; the trace's header follows it
  std::atomic<std::uint32_t> last_optimizer_step{~std::uint32_t{0}};
  std::atomic<Pass> last_pass{Pass::none};
  std::atomic<bool> has_python{false};  // frames can be read; once they can, that stays so
  bool has_origins = false;             // storages tell when they die
  // The iteration whose optimizer is to be timed; that of no iteration where none is.
  std::atomic<std::uint32_t> timed_step{~std::uint32_t{0}};
  const HostServices* host = nullptr;
  trace::Recorder* recorder = nullptr;
  // libtorch_python's code, whose callers hold the GIL again on return; null while that is not loaded.
  std::atomic<const void*> python_bindings_begin{nullptr};
  std::atomic<const void*> python_bindings_end{nullptr};
};

struct Directories {
  char torch[512] = {};   // ".../site-packages/torch/"
  char start[4096] = {};  // where relative file names of code objects begin
};

extern Runtime runtime;
extern Directories directories;

// Then the simulation knows of streams, events and memory, else CUDA's calls do.
inline bool devices_are_simulated() noexcept {
  return runtime.host->options.simulated_devices > 0;
}

}  // namespace devsan::hooks
