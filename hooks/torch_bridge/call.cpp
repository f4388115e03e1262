#include "hooks/torch_bridge/call.h"

#include <ATen/SequenceNumber.h>

#include <string_view>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/moves.h"
#include "hooks/inprocess/events/operator_table.h"
#include "hooks/inprocess/events/step_times.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/python_thread.h"
#include "hooks/inprocess/provenance/callers.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "hooks/inprocess/provenance/lineage.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/provenance/thread_caches.h"
#include "hooks/torch_bridge/backward.h"
#include "hooks/torch_bridge/meeting.h"
#include "hooks/torch_bridge/storage_release.h"
#include "hooks/torch_bridge/storage_search.h"
#include "hooks/torch_bridge/thread_start.h"

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
  entry.sequence = static_cast<std::uint32_t>(state.sequence++);
  state.ring_index = state.ring_index + 1 < trace::kRingEntries ? state.ring_index + 1 : 0;
  __atomic_store_n(&ring->next, state.sequence, __ATOMIC_RELEASE);
}

// Returns what the caches keep for the innermost frame; null where that is nothing.
[[gnu::always_inline]] inline FrameMemo* find_call_site(ThreadState& state, bool makes_values) noexcept {
  OuterCall& outer = state.outer;
  outer.python = python_thread(state);
  if (outer.python == nullptr) {
    outer.frame = nullptr;
    outer.frame_word = &outer.frame;
    outer.site = {};
    return nullptr;
  }
  outer.frame_word = frame_word(outer.python);
  outer.frame = *outer.frame_word;
  if (outer.frame == state.backward_frame) {
    outer.site = state.backward_site;  // no Python ran since the engine was called, so the frames are the same
    return nullptr;
  }
  FrameMemo* memo = nullptr;
  outer.site = call_site(state.caches, current_frame(outer.python), makes_values, memo);
  return memo;
}

// Whether nothing else refers to it: then it was made just now, by the operator that returned it.
template <class T>
inline bool is_sole(const T* counted) noexcept {
  return c10::raw::intrusive_ptr::use_count(const_cast<T*>(counted)) == 1;
}

// An autograd.Function makes its node before its forward runs, whose operators make none: the first of them has to look
// for it. Inside an optimizer, and in a backward as long as no Python runs, a node comes with the result that has it.
inline bool only_operators_make_nodes(const ThreadState& state) noexcept {
  if ((state.outer.site.marks & kOptimizerCode) != 0) return true;
  return state.backward_frame != nullptr && state.outer.frame == state.backward_frame;
}

// One iteration counts once, however many parameter groups or inner optimizers it steps.
void count_optimizer_step(const ThreadState& state) noexcept {
  const std::uint32_t step = runtime.step.load(std::memory_order_relaxed);
  if (runtime.last_optimizer_step.load(std::memory_order_relaxed) == step) {
    if (runtime.timed_step.load(std::memory_order_relaxed) == step) note_optimizer_runs();
    return;
  }
  if (runtime.last_optimizer_step.exchange(step, std::memory_order_relaxed) != step) {
    runtime.recorder->count_optimizer_step();
    note_optimizer_begins();
    note_use_begins(state, false);
  }
}

}  // namespace

OutermostCall::OutermostCall(trace::OperatorId op, const Operands& seen, bool makes_values) noexcept
    : state_(thread_state()), seen_(seen), op_(op), whole_site_(makes_values) {
  if (state_.depth++ != 0) [[unlikely]] {  // Python came between: autograd's nodes so far are the outer operator's
    if (at::sequence_number::peek() != state_.node_sequence) note_autograd_nodes(state_, trace::OperatorId::none);
    around_ = state_.outer;
  }
  ThreadState& state = state_;
  if (state.epoch != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) [[unlikely]]
    start_thread(state);
  memo_ = find_call_site(state, makes_values);
  record_in_ring(state, op, seen);
  if ((state.outer.site.marks & kOptimizerCode) != 0) count_optimizer_step(state);
  if (state.unhandled != nullptr) [[unlikely]]
    notice_handled(state);
}

void OutermostCall::note_nodes() noexcept {
  if (at::sequence_number::peek() == state_.node_sequence) return;
  if (!whole_site_) find_call_site(state_, true);
  note_autograd_nodes(state_, op_);
}

inline void OutermostCall::leave() noexcept {
  state_.thrown = nullptr;  // whatever was thrown on the way has been caught, and freed
  if (state_.device_error != trace::StringId::none) [[unlikely]]
    state_.device_error = trace::StringId::none;
  if (--state_.depth != 0) [[unlikely]]
    state_.outer = around_;
}

[[gnu::always_inline]] inline void OutermostCall::note_returned(const c10::TensorImpl* result) noexcept {
  if (TensorFields::may_have_node(result) || !only_operators_make_nodes(state_)) note_nodes();
  leave();
}

void OutermostCall::returned(const c10::TensorImpl* result) noexcept {
  note_returned(result);
}

void OutermostCall::returned() noexcept {
  note_nodes();
  leave();
}

inline void OutermostCall::give_origin(std::atomic<std::uint64_t>* vacancy, const c10::StorageImpl* storage,
                                       const c10::TensorImpl* result) noexcept {
  const DeviceKey device = TensorFields::device(result);
  trace::How how = trace::How::created;
  trace::LineageId parent = trace::LineageId::none;
  if (seen_.first != nullptr && (device == seen_.device || !is_factory(op_))) {
    how = device == seen_.device ? trace::How::derived : trace::How::moved;
    if (const c10::StorageImpl* source = TensorFields::storage_behind(seen_.first)) {
      parent = origin_table().find(source);
      if (how == trace::How::moved) [[unlikely]] {
        note_copy(source, Copied::away, {state_.outer.site.id, callers(state_), device_slot(device)});
        note_move(state_, source);
      }
    }
  }
  tag(vacancy, storage, parent, device, how);
}

void OutermostCall::tag(std::atomic<std::uint64_t>* vacancy, const c10::StorageImpl* storage, trace::LineageId parent,
                        DeviceKey device, trace::How how) noexcept {
  const std::uint32_t calls = how == trace::How::derived ? 0 : callers(state_);
  const NodeWords node = node_words(parent, state_.outer.site.id, op_, device_slot(device), how, calls);
  const trace::LineageId id = lineage_id(state_.caches, memo_, node);
  if (id != trace::LineageId::none) OriginTable::fill(vacancy, storage, id);
}

[[gnu::always_inline]] inline bool OutermostCall::note_storage(const c10::StorageImpl* storage,
                                                               const c10::TensorImpl* result) noexcept {
  if (!tells_when_it_dies(storage)) return true;
  auto* vacancy = origin_table().vacancy(storage);
  if (vacancy == nullptr) return true;
  if (!is_sole(storage) || !is_sole(result)) return false;
  give_origin(vacancy, storage, result);
  return true;
}

[[gnu::always_inline]] inline bool OutermostCall::note_made(const c10::TensorImpl* result) noexcept {
  const c10::StorageImpl* storage = TensorFields::storage(result);
  if (storage == nullptr) [[unlikely]]
    return note_without_storage(result);
  if (seen_.first != nullptr && storage == TensorFields::storage(seen_.first)) return true;
  return note_storage(storage, result);
}

bool OutermostCall::note_without_storage(const c10::TensorImpl* result) noexcept {
  const c10::StorageImpl* storage = inner_storage(result);
  if (storage == nullptr) return true;
  if (seen_.first != nullptr && storage == TensorFields::storage_behind(seen_.first)) return true;
  return note_storage(storage, result);
}

bool OutermostCall::made(const c10::TensorImpl* result) noexcept {
  return note_made(result);
}

void OutermostCall::made_unless_operand(const c10::TensorImpl* result, const ArgumentsView& arguments) noexcept {
  const c10::StorageImpl* storage = TensorFields::storage_behind(result);
  StorageSearch search(storage);
  arguments.visit(search);
  auto* vacancy = origin_table().vacancy(storage);
  if (!search.found && vacancy != nullptr) give_origin(vacancy, storage, result);
}

bool OutermostCall::finished(const c10::TensorImpl* result) noexcept {
  if (seen_.mixed || !note_made(result)) [[unlikely]]
    return false;
  note_returned(result);
  return true;
}

void OutermostCall::finish(const c10::TensorImpl* result, const ArgumentsView& arguments, const void* caller) noexcept {
  if (!made(result)) made_unless_operand(result, arguments);
  if (seen_.mixed) allowed(arguments, caller);
  returned(result);
}

void OutermostCall::left_operand(Copied how, const c10::TensorImpl* result) noexcept {
  if (seen_.first == nullptr || (result == seen_.first) != (how == Copied::nowhere)) return;
  const c10::StorageImpl* storage = TensorFields::storage_behind(seen_.first);
  if (storage != nullptr) note_copy(storage, how, {state_.outer.site.id, callers(state_), device_slot(seen_.device)});
}

void OutermostCall::took_copy(const c10::TensorImpl* result) noexcept {
  const c10::StorageImpl* storage = TensorFields::storage_behind(result);
  const trace::LineageId known = storage != nullptr ? origin_table().find(storage) : trace::LineageId::none;
  if (known == trace::LineageId::none) return;
  const trace::LineageNode made = runtime.recorder->lineage(known);
  if (made.how != trace::How::derived || made.op != op_ || made.site != state_.outer.site.id) return;
  origin_table().erase(storage);
  auto* vacancy = origin_table().vacancy(storage);
  const NodeWords node =
      node_words(made.parent, made.site, op_, device_slot(TensorFields::device(result)), made.how, callers(state_));
  const trace::LineageId id = lineage_id(state_.caches, node);
  if (vacancy != nullptr && id != trace::LineageId::none) OriginTable::fill(vacancy, storage, id);
}

namespace {

// Whether torch made the tensor itself in the same call, with nothing in it, to give it the storage: _rebuild_tensor()
// of torch.load, and torch.asarray(), by which safetensors hands out what it has read. A storage that the program
// itself gives to a tensor may come from anywhere.
bool makes_tensor_of_storage(const ThreadState& state) noexcept {
  const trace::Position innermost = runtime.recorder->site(state.outer.site.id).innermost;
  if (runtime.recorder->string(innermost.file).ends_with("/torch/_utils.py")) {
    return runtime.recorder->string(innermost.function) == "_rebuild_tensor";
  }
  // Torch's own code copies storages by way of such tensors, whoever has made them.
  if (state.ring == nullptr || (state.outer.site.marks & kTorchCode) != 0) return false;
  const trace::RingEntry& before =
      state.ring->entries[(state.ring_index + trace::kRingEntries - 2) % trace::kRingEntries];
  const OperatorText* op = operator_text(before.op);
  return before.site == state.outer.site.id && op != nullptr && std::string_view(op->name) == "aten::empty";
}

}  // namespace

void OutermostCall::took_storage(const c10::TensorImpl* tensor) noexcept {
  const c10::StorageImpl* storage = TensorFields::storage(tensor);
  if (storage == nullptr || !tells_when_it_dies(storage)) return;
  auto* vacancy = origin_table().vacancy(storage);
  if (vacancy == nullptr) return;
  if (!whole_site_) find_call_site(state_, true);
  if (!makes_tensor_of_storage(state_)) return;
  tag(vacancy, storage, trace::LineageId::none, TensorFields::device(tensor), trace::How::created);
}

void OutermostCall::copied(const c10::StorageImpl* to, const c10::StorageImpl* from) noexcept {
  if ((state_.outer.site.marks & kTorchCode) == 0 || !tells_when_it_dies(to)) return;
  const trace::LineageId made = origin_table().find(to);
  if (made != trace::LineageId::none) {  // by a factory, for this copy; otherwise it is some older storage
    const trace::LineageNode node = runtime.recorder->lineage(made);
    if (node.how != trace::How::created || !is_same_line(node.site, state_.outer.site.id)) return;
    origin_table().erase(to);
  }
  auto* vacancy = origin_table().vacancy(to);
  const trace::How how = to->device() == from->device() ? trace::How::derived : trace::How::moved;
  tag(vacancy, to, origin_table().find(from), device_key(to->device()), how);
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
