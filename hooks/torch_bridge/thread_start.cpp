#include "hooks/torch_bridge/thread_start.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/attribute_writes.h"
#include "hooks/inprocess/events/collective_log.h"
#include "hooks/inprocess/events/hang_watch.h"
#include "hooks/inprocess/events/pending_copies.h"
#include "hooks/inprocess/interpreter/python_start.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/provenance/thread_caches.h"
#include "hooks/torch_bridge/collective_groups.h"
#include "hooks/torch_bridge/schema_operators.h"

namespace devsan::hooks {

void start_thread(ThreadState& state) noexcept {
  trace::Recorder& recorder = *runtime.recorder;
  if (!recorder.active() && !recorder.gave_up()) {
    reset_sites_after_fork();
    pending_copies.reset_after_fork();
    reset_schema_operators_after_fork();
    reset_groups_after_fork();
    collective_log.reset_after_fork();
    reset_hang_watch_after_fork();
    if (recorder.reopen_in_child()) {
      recorder.set_step(runtime.step.load(std::memory_order_relaxed));
      runtime.host->record_suppressions();
    }
  }
  state.epoch = runtime.epoch_page->epoch.load(std::memory_order_relaxed);
  state.tid = static_cast<std::uint32_t>(::syscall(SYS_gettid));
  state.unhandled = nullptr;
  state.number = nullptr;
  look_for_python();
  watch_attribute_writes();
  state.main_python = lasting_python_thread();
  state.ring = nullptr;
  state.ring_index = 0;
  state.sequence = 0;
  if (recorder.active()) {
    char name[16] = {};
    ::prctl(PR_GET_NAME, name);
    state.ring = recorder.acquire_ring(state.tid, name);
  }
  state.caches = ThreadCaches::claim(state.tid);
}

}  // namespace devsan::hooks
