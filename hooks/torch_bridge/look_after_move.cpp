#include "hooks/torch_bridge/look_after_move.h"

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/moves.h"
#include "hooks/inprocess/events/placements.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/provenance/thread_caches.h"
#include "hooks/torch_bridge/meeting.h"

namespace devsan::hooks {

void look_after_move(ThreadState& state, const void* caller) noexcept {
  const WantedLook wanted = wanted_look();
  if (state.tid != wanted.tid || state.backward_depth != 0) return;
  const bool trains = runtime.last_pass.load(std::memory_order_relaxed) == Pass::forward ||
                      (state.outer.site.marks & kOptimizerCode) != 0;
  if (!trains) return put_off_wanted_look();
  if (!may_take_gil(state, caller)) return;
  const void* const thread = state.outer.python;
  const trace::SiteId line = call_site(state.caches, current_frame(thread), true).id;
  if (wanted.line != trace::SiteId::none && is_same_line(line, wanted.line)) return;
  drop_wanted_look();
  look_at_placements(thread, trace::LookedAt::in_step);
}

}  // namespace devsan::hooks
