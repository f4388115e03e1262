#include "hooks/call.h"

#include <ATen/SequenceNumber.h>

#include "hooks/backward.h"
#include "hooks/code_table.h"
#include "hooks/lineage.h"
#include "hooks/meeting.h"
#include "hooks/operator_table.h"
#include "hooks/origin_table.h"
#include "hooks/runtime.h"
#include "hooks/sites.h"
#include "hooks/storage_release.h"
#include "hooks/thread_caches.h"
#include "hooks/thread_start.h"

namespace devsan::hooks {

namespace {

inline void record_in_ring(ThreadState& state, trace::OperatorId op, const Operands& seen) noexcept {
  trace::ThreadRing* ring = state.ring;
  if (ring == nullptr) return;
  trace::RingEntry& entry = ring->entries[state.ring_index];
  entry.op = op;
  entry.device = device_slot(seen.device);
  entry.site = state.outer.site.id;
  entry.step = runtime.step.load(std::memory_order_relaxed);
  entry.sequence = state.sequence++;
  state.ring_index = state.ring_index + 1 < trace::kRingEntries ? state.ring_index + 1 : 0;
  __atomic_store_n(&ring->next, ring->next + 1, __ATOMIC_RELEASE);
}

[[gnu::always_inline]] inline void find_call_site(ThreadState& state, bool makes_values) noexcept {
  OuterCall& outer = state.outer;
  outer.python = python_thread(state);
  if (outer.python == nullptr) {
    outer.frame = nullptr;
    outer.frame_word = &outer.frame;
    outer.site = {};
    return;
  }
  outer.frame_word = frame_word(outer.python);
  outer.frame = *outer.frame_word;
  if (outer.frame == state.backward_frame) {
    outer.site = state.backward_site;  // no Python ran since the engine was called, so the frames are the same
    return;
  }
  const void* frame = current_frame(outer.python);
  const CallerFrames caller = makes_values ? find_caller(frame) : find_innermost(frame);
  outer.site = {find_site(state.caches, caller), caller.marks};
}

// One iteration counts once, however many parameter groups or inner optimizers it steps.
void count_optimizer_step() noexcept {
  const std::uint32_t step = runtime.step.load(std::memory_order_relaxed);
  if (runtime.last_optimizer_step.load(std::memory_order_relaxed) == step) return;
  if (runtime.last_optimizer_step.exchange(step, std::memory_order_relaxed) != step) {
    runtime.recorder->count_optimizer_step();
  }
}

}  // namespace

OutermostCall::OutermostCall(trace::OperatorId op, const Operands& seen, bool makes_values) noexcept
    : state_(thread_state()), seen_(seen), op_(op), whole_site_(makes_values) {
  if (state_.depth++ != 0) [[unlikely]] {  // Python came between: autograd's nodes so far are the outer operator's
    if (at::sequence_number::peek() != state_.node_sequence) note_autograd_nodes(state_, trace::OperatorId::none);
    around_ = state_.outer;
  }
  if (state_.epoch != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) [[unlikely]]
    start_thread(state_);
  find_call_site(state_, makes_values);
  record_in_ring(state_, op, seen);
  if ((state_.outer.site.marks & kOptimizerCode) != 0) count_optimizer_step();
  if (state_.unhandled != nullptr) [[unlikely]]
    notice_handled(state_);
}

void OutermostCall::returned() noexcept {
  state_.thrown = nullptr;  // whatever was thrown on the way has been caught, and freed
  if (at::sequence_number::peek() != state_.node_sequence) [[unlikely]] {
    if (!whole_site_) find_call_site(state_, true);
    note_autograd_nodes(state_, op_);
  }
  if (state_.device_error != trace::StringId::none) [[unlikely]]
    state_.device_error = trace::StringId::none;
  if (--state_.depth != 0) [[unlikely]]
    state_.outer = around_;
}

void OutermostCall::made(const c10::TensorImpl* result) noexcept {
  const c10::StorageImpl* storage = TensorFields::storage(result);
  if (storage == nullptr || !runtime.has_origins) return;
  const c10::StorageImpl* source = seen_.first != nullptr ? TensorFields::storage(seen_.first) : nullptr;
  if (storage == source || !tells_when_it_dies(storage)) return;
  auto* vacancy = origin_table.vacancy(storage);
  if (vacancy == nullptr) return;
  const DeviceKey device = TensorFields::device(result);
  trace::LineageNode node{};
  node.site = state_.outer.site.id;
  node.op = op_;
  node.device = device_slot(device);
  node.how = trace::How::created;
  if (seen_.first != nullptr && (device == seen_.device || !is_factory(op_))) {
    node.how = device == seen_.device ? trace::How::derived : trace::How::moved;
    if (source != nullptr) node.parent = origin_table.find(source);
  }
  const trace::LineageId id = lineage_id(state_.caches, node);
  if (id != trace::LineageId::none) OriginTable::fill(vacancy, storage, id);
}

template <class Arguments>
void OutermostCall::note_allowed(Arguments& arguments, const void* caller) noexcept {
  if (state_.busy) return;
  if (!whole_site_) find_call_site(state_, true);
  record_allowed(state_, op_, arguments, caller);
}

void OutermostCall::allowed(const ArgumentsView& arguments, const void* caller) noexcept {
  note_allowed(arguments, caller);
}

void OutermostCall::allowed(OperandList& operands, const void* caller) noexcept {
  note_allowed(operands, caller);
}

template <class Arguments>
void OutermostCall::note_thrown(Arguments& arguments, const void* caller) noexcept {
  if (!state_.busy) {
    if (!whole_site_) find_call_site(state_, true);
    record_raised(state_, op_, arguments, caller);
  }
  if (--state_.depth != 0) state_.outer = around_;
}

void OutermostCall::thrown(const ArgumentsView& arguments, const void* caller) noexcept {
  note_thrown(arguments, caller);
}

void OutermostCall::thrown(OperandList& operands, const void* caller) noexcept {
  note_thrown(operands, caller);
}

}  // namespace devsan::hooks
