// The first and the last that a process sees of devsan. In a process without torch this is nearly all that runs: one
// look at the environment, one fstat, and one walk over what is loaded.
#include "preload/interpreter.h"
#include "preload/say.h"
#include "preload/session.h"
#include "preload/torch_search.h"

namespace devsan {
namespace {

// Runs after the constructors of everything that was linked with the program, so a torch among it is initialised;
// before those of the program itself.
__attribute__((constructor)) void begin() noexcept {
  remember_options();
  // Two builds of us in one process would both load hooks; the program meets the first.
  if (switched_off() || find_in_process("devsan_set_enabled") != reinterpret_cast<void*>(&devsan_set_enabled)) return;
  remember_stderr();
  set_stage(Stage::waiting);
  const TorchSighting torch = look_for_torch(nullptr);
  if (!torch.library.empty() && begin_starting()) start(torch, false);
}

// exit() comes here after the program's own handlers. Recorder::close does nothing in a child that opened no file.
__attribute__((destructor)) void end() noexcept {
  recorder().close(trace::CloseMark::exited);
}

}  // namespace
}  // namespace devsan
