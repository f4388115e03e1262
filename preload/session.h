// devsan's part of a process: what it is doing there, and the pieces that it owns. All of it lies in static storage and
// is never destroyed, since threads may run on after the end of main.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/torch_search.h"
#include "trace/recorder.h"

namespace devsan {

enum class Stage : std::uint32_t {
  off,       // not started yet, switched off, or given up: every call goes straight to the real function
  waiting,   // for torch to be loaded
  starting,  // one thread is loading the hooks
  running,   // new objects are patched as they come
};

Stage stage() noexcept;
void set_stage(Stage stage) noexcept;
bool begin_starting() noexcept;  // true for the one thread that is to do it

trace::Recorder& recorder() noexcept;

// The options as the process was started with them; the text is copied, since programs overwrite their environment.
void remember_options() noexcept;
bool switched_off() noexcept;  // DEVSAN_OPTIONS says enabled=0

// Loads the hooks and patches what is loaded. On any trouble it says so once and the program runs on as it is.
void start(const TorchSighting& torch, bool importing) noexcept;

// Looks for objects that were loaded or unloaded; only one thread does, and no other waits for it.
void patch_new_objects() noexcept;

// What the process is to end with, when the program leaves it without running exit handlers. May be called in a signal
// handler, and in a vfork child.
int status_at_end(int status) noexcept;

// Whether the extension module of torch is to be handed to the simulation when it is made.
bool simulation_wants_module() noexcept;
void give_module_to_simulation(void* module) noexcept;

}  // namespace devsan

// For the benchmark, which compares a process with itself: takes the wrappers out of every slot, or puts them in again.
extern "C" __attribute__((visibility("default"))) void devsan_set_enabled(int enabled);
