#include "hooks/inprocess/events/halt.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/spin_guard.h"

namespace devsan::hooks {

namespace {

constexpr int kHaltStatus = 66;

struct Raised {
  const trace::MeetingPayload* meeting = nullptr;
  pid_t pid = 0;  // a fork child has its parent's entries, which are none of its business; so has a vfork child
  bool may_be_caught_elsewhere = false;

  bool pending() const noexcept {
    return meeting != nullptr && pid == ::getpid() &&
           (__atomic_load_n(&meeting->flags, __ATOMIC_RELAXED) & trace::kHandled) == 0;
  }
};

// The first ones that are not handled: one is enough to decide about the status.
constinit Raised raised[64]{};
constinit std::atomic_flag lock = ATOMIC_FLAG_INIT;

bool is_pending(bool ended_well) noexcept {
  const SpinGuard guard(lock);
  if (!guard.held()) return false;
  for (const Raised& entry : raised) {
    if (entry.pending() && !(ended_well && entry.may_be_caught_elsewhere)) return true;
  }
  return false;
}

}  // namespace

void halt_at_finding() noexcept {
  if (!runtime.host->options.halt) return;
  runtime.host->say("ending the process with status 66 (option halt)");
  runtime.recorder->close(trace::CloseMark::halted);
  ::_exit(kHaltStatus);
}

void halt_unless_handled(trace::MeetingPayload* meeting, bool may_be_caught_elsewhere) noexcept {
  if (!runtime.host->options.halt || meeting == nullptr) return;
  const SpinGuard guard(lock);
  if (!guard.held()) return;
  Raised* place = nullptr;
  for (Raised& entry : raised) {
    if (entry.meeting == meeting && entry.pid == ::getpid()) {
      place = &entry;
      break;
    }
    if (place == nullptr && !entry.pending()) place = &entry;
  }
  if (place != nullptr) *place = {meeting, ::getpid(), may_be_caught_elsewhere};
}

int status_with_halt(int status, bool runs_exit_handlers) noexcept {
  if (!runtime.host->options.halt || status == kHaltStatus || (status == 0 && !runs_exit_handlers)) return status;
  if (!is_pending(status == 0)) return status;
  char text[96];
  std::snprintf(text, sizeof text, "the process ends with 66 instead of %d, as the option halt asks", status);
  runtime.host->say(text);
  runtime.recorder->close(trace::CloseMark::halted);
  return kHaltStatus;
}

}  // namespace devsan::hooks
