#include "hooks/torch_bridge/event.h"

#include <algorithm>

#include "hooks/inprocess/bridge/memory_samples.h"
#include "hooks/inprocess/common/busy.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/halt.h"
#include "hooks/inprocess/events/loader_site.h"
#include "hooks/inprocess/events/operator_table.h"
#include "hooks/inprocess/events/schema.h"
#include "hooks/inprocess/events/silence.h"
#include "hooks/inprocess/events/taking_site.h"
#include "hooks/inprocess/events/traffic_table.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/interpreter/python_thread.h"
#include "hooks/inprocess/provenance/stack.h"
#include "hooks/inprocess/provenance/thread_caches.h"
#include "hooks/torch_bridge/backward.h"
#include "trace/clock.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxFrames = 24;

trace::TrafficPayload* write(const ThreadState& state, Event event,
                             std::span<const trace::OperandRecord> operands) noexcept {
  const Stack stack(state, state.backward_depth != 0 ? event.site.id : trace::SiteId::none);
  const auto frames = stack.frames().first(std::min(stack.frames().size(), kMaxFrames));
  if (event.kind == trace::TrafficKind::unpinned_copy && event.cause == trace::SiteId::none) {
    event.cause = loader_site(operands, frames);
  }
  const bool by_program = (event.site.marks & kLibraryCode) == 0;
  if (event.kind == trace::TrafficKind::wait && by_program) event.cause = taking_site(event.site.id, operands);
  trace::TrafficPayload fixed{};
  fixed.bytes = event.bytes;
  fixed.steps = 1;
  fixed.step = fixed.last_step = runtime.step.load(std::memory_order_relaxed);
  fixed.time_ns = trace::wall_clock_ns();
  fixed.site = event.site.id;
  fixed.cause = event.cause;
  fixed.op = event.op;
  fixed.kind = event.kind;
  fixed.race = event.race;
  fixed.phase = stack.phase();
  fixed.flags = event.flags;
  fixed.tid = state.tid;
  fixed.thread_name = state.ring != nullptr ? state.ring->name : trace::StringId::none;
  keep_source_lines(frames);
  if (event.cause != trace::SiteId::none) keep_source_lines(event.cause);
  for (const trace::OperandRecord& operand : operands) keep_source_lines(operand.lineage);
  return runtime.recorder->add_traffic(fixed, operands, frames);
}

trace::FindingKind kind_of(trace::TrafficKind kind) noexcept {
  switch (kind) {
    case trace::TrafficKind::copy:
      return trace::FindingKind::implicit_transfer;
    case trace::TrafficKind::unpinned_copy:
      return trace::FindingKind::unpinned_async_copy;
    case trace::TrafficKind::race:
      return trace::FindingKind::async_race;
    case trace::TrafficKind::none:
    case trace::TrafficKind::wait:
      break;
  }
  return trace::FindingKind::implicit_sync;
}

std::uint8_t flags_of_traffic(Silence silence) noexcept {
  if (silence == Silence::none) return 0;
  return silence == Silence::allowed ? trace::kTrafficAllowed : trace::kTrafficExpected;
}

// Whether it is a warning for sure. What is given to NumPy is settled later, and whether a wait is one shows in the
// line's text: the report decides about them.
bool is_warning(const Event& event) noexcept {
  const bool foreign = (event.flags & trace::kForeignPlace) != 0;
  if (event.kind == trace::TrafficKind::unpinned_copy) return !foreign;
  return event.kind == trace::TrafficKind::race && event.race != trace::RaceKind::numpy_read_target &&
         !(foreign && (event.flags & trace::kForeignCause) != 0);
}

}  // namespace

CallSite place(const ThreadState& state) noexcept {
  const void* thread = python_thread(state);
  CallSite site{trace::SiteId::none, kTorchCode};
  if (thread != nullptr) {
    if (state.backward_frame != nullptr && *frame_word(thread) == state.backward_frame) return state.backward_site;
    site = call_site(state.caches, current_frame(thread), true);
  }
  // Threads of autograd's engine run no Python, though the interpreter knows those that torch's bindings have made.
  if (site.id == trace::SiteId::none) site = {backward_call_site(), kTorchCode};
  return site;
}

bool is_foreign(const CallSite& site) noexcept {
  return (site.marks & (kTorchCode | kLibraryCode)) != 0;
}

std::string_view schema_of(trace::OperatorId op) noexcept {
  const OperatorText* text = operator_text(op);
  return text != nullptr ? text->schema : std::string_view();
}

trace::OperatorId running_operator(const ThreadState& state) noexcept {
  if (state.ring == nullptr) return trace::OperatorId::none;
  return state.ring->entries[(state.ring_index + trace::kRingEntries - 1) % trace::kRingEntries].op;
}

std::string_view name_of(trace::OperatorId op) noexcept {
  const OperatorText* text = operator_text(op);
  return text != nullptr ? text->name : std::string_view();
}

trace::TrafficPayload* count_event(ThreadState& state, Event event,
                                   c10::function_ref<void(OperandList&)> describe) noexcept {
  const Busy busy(state);
  if (event.kind != trace::TrafficKind::race) note_round(event.site.id);
  const trace::FindingKind finding = kind_of(event.kind);
  FindingScope* scope = nullptr;
  const Silence silence = silence_by_program(state, finding, &scope);
  event.flags |= flags_of_traffic(silence);
  const TrafficKey key{event.site.id, event.cause, event.op, event.kind, event.race, event.flags};
  bool is_new = false;
  TrafficTable::Entry* entry = traffic_table.find_or_claim(key, state.epoch, &is_new);
  // A copy is a finding from the second one at its line on.
  if (!is_new || event.kind != trace::TrafficKind::copy) count_for(scope);
  if (entry == nullptr) return nullptr;
  if (is_new) {
    OperandList operands(event.op);
    describe(operands);
    trace::TrafficPayload* written = write(state, event, operands.records());
    entry->payload.store(written, std::memory_order_release);
    const bool loud = written != nullptr && silence == Silence::none && is_warning(event);
    if (loud && !is_suppressed(finding, event.op, runtime.recorder->site(event.site.id).user)) halt_at_finding();
    return written;
  }
  trace::TrafficPayload* known = entry->payload.load(std::memory_order_acquire);
  trace::Recorder::bump_traffic(known, runtime.step.load(std::memory_order_relaxed), event.bytes);
  return known;
}

}  // namespace devsan::hooks
