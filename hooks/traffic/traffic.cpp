#include "hooks/traffic/traffic.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <string_view>

#include "hooks/evidence/examine.h"
#include "hooks/evidence/loader_site.h"
#include "hooks/evidence/taking_site.h"
#include "hooks/meetings/halt.h"
#include "hooks/meetings/meeting.h"
#include "hooks/meetings/silence.h"
#include "hooks/operators/operand_list.h"
#include "hooks/operators/operator_table.h"
#include "hooks/operators/schema.h"
#include "hooks/origins/backward.h"
#include "hooks/origins/stack.h"
#include "hooks/process/busy.h"
#include "hooks/process/runtime.h"
#include "hooks/process/thread_caches.h"
#include "hooks/process/thread_start.h"
#include "hooks/python/python_frames.h"
#include "hooks/traffic/copies.h"
#include "hooks/traffic/traffic_table.h"
#include "trace/clock.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxFrames = 24;

bool is_cuda(const c10::TensorImpl* tensor) noexcept {
  return hooks::is_cuda(TensorFields::device(tensor));
}
bool is_cpu(const c10::TensorImpl* tensor) noexcept {
  return (TensorFields::device(tensor) & 0xff) == static_cast<std::uint8_t>(c10::DeviceType::CPU);
}
const c10::TensorImpl* implementation(const at::Tensor& tensor) noexcept {
  return tensor.unsafeGetTensorImpl();
}

// Of a dense tensor with a storage of its own; 0 for every other kind.
std::uint64_t bytes_of(const c10::TensorImpl* tensor) noexcept {
  if (TensorFields::symbolic(tensor) || TensorFields::storage(tensor) == nullptr) return 0;
  std::uint64_t elements = 1;
  for (const std::int64_t size : TensorFields::sizes(tensor)) elements *= static_cast<std::uint64_t>(size);
  return elements * TensorFields::dtype(tensor).itemsize();
}

// Its part of its storage; all of it for a tensor that keeps its elements some other way.
Extent memory_of(const c10::TensorImpl* tensor) noexcept {
  const c10::StorageImpl* storage = TensorFields::storage(tensor);
  if (storage == nullptr || TensorFields::symbolic(tensor)) return {storage};
  const auto sizes = TensorFields::sizes(tensor);
  const auto strides = TensorFields::strides(tensor);
  return extent_of(storage, TensorFields::dtype(tensor).itemsize(), TensorFields::storage_offset(tensor),
                   {sizes.data(), sizes.size()}, {strides.data(), strides.size()});
}

// Of a symbolic tensor there is none.
const void* begin_of(const c10::TensorImpl* tensor) noexcept {
  c10::StorageImpl* storage = const_cast<c10::StorageImpl*>(TensorFields::storage(tensor));
  return storage != nullptr ? storage->_mutable_data_ptr_no_checks().get() : nullptr;
}

// Asks PyTorch, which knows its own pinned memory and, on real devices, the driver's.
bool is_pinned(const c10::TensorImpl* tensor) noexcept {
  try {
    return at::detail::getCUDAHooks().isPinnedPtr(TensorFields::storage(tensor)->data());
  } catch (...) {  // no such device any more
    return true;
  }
}

// The stream that an operator on this tensor is queued on by the calling thread.
bool current_stream(const c10::TensorImpl* tensor, StreamKey* stream) noexcept {
  try {
    const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
    const c10::Stream current = guard.getStream(device_of_key(TensorFields::device(tensor)));
    *stream = {current.device_index(), current.id()};
    return true;
  } catch (...) {
    return false;
  }
}

// On real devices a program waits by calls of the CUDA runtime, which are not followed: there a copy is never known to
// be pending.
bool waits_are_seen() noexcept {
  return runtime.host->options.simulated_devices > 0;
}

// Where the program is. Threads of autograd's engine have no Python frames: there it is the line that called backward.
CallSite place(const ThreadState& state) noexcept {
  const void* thread = python_thread(state);
  if (thread == nullptr) return {backward_call_site(), kTorchCode};
  if (state.backward_frame != nullptr && *frame_word(thread) == state.backward_frame) return state.backward_site;
  return call_site(state.caches, current_frame(thread), true);
}

bool is_foreign(const CallSite& site) noexcept {
  return (site.marks & (kTorchCode | kLibraryCode)) != 0;
}

std::string_view schema_of(trace::OperatorId op) noexcept {
  const OperatorText* text = operator_text(op);
  return text != nullptr ? text->schema : std::string_view();
}

// The operator that the thread called last: around a nested one, the outermost.
trace::OperatorId running_operator(const ThreadState& state) noexcept {
  if (state.ring == nullptr) return trace::OperatorId::none;
  return state.ring->entries[(state.ring_index + trace::kRingEntries - 1) % trace::kRingEntries].op;
}

std::string_view name_of(trace::OperatorId op) noexcept {
  const OperatorText* text = operator_text(op);
  return text != nullptr ? text->name : std::string_view();
}

// All that these do is to bring their only operand's value to the host.
bool asks_for_value(trace::OperatorId op) noexcept {
  const std::string_view name = name_of(op);
  return name == "aten::item" || name == "aten::is_nonzero";
}

struct Event {
  trace::TrafficKind kind = trace::TrafficKind::none;
  trace::RaceKind race = trace::RaceKind::none;
  trace::OperatorId op = trace::OperatorId::none;
  CallSite site;
  trace::SiteId cause = trace::SiteId::none;
  std::uint8_t flags = 0;  // TrafficFlags
  std::uint64_t bytes = 0;
};

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
  if (event.cause != trace::SiteId::none) {
    trace::FrameRecord cause[2];
    keep_source_lines({cause, frames_of_site(event.cause, cause)});
  }
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

// Counts the event; `describe` gives the operands of the first one at its site.
template <class Describe>
trace::TrafficPayload* count(ThreadState& state, Event event, Describe describe) noexcept {
  const Busy busy(state);
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

trace::TrafficPayload* tell_of_race(ThreadState& state, trace::RaceKind race, trace::OperatorId op,
                                    const PendingCopy& copy, const ArgumentsView* arguments,
                                    const void* caller) noexcept {
  Event event;
  event.kind = trace::TrafficKind::race;
  event.race = race;
  event.op = op;
  event.site = place(state);
  event.cause = copy.site;
  event.flags =
      static_cast<std::uint8_t>((is_foreign(event.site) ? trace::kForeignPlace : 0) |
                                (copy.foreign ? trace::kForeignCause : 0) | (copy.to_host ? trace::kToHost : 0));
  event.bytes = copy.bytes;
  return count(state, event, [&](OperandList& operands) {
    if (arguments == nullptr) return;
    arguments->visit(operands);
    if (!may_take_gil(state, caller)) return;
    const PythonSection section;
    find_names(state.outer.python, event.site.id, operands);
  });
}

trace::RaceKind race_of_host(const PendingCopy& copy, bool writes) noexcept {
  if (!copy.to_host) return trace::RaceKind::host_wrote_source;
  return writes ? trace::RaceKind::host_wrote_target : trace::RaceKind::host_read_target;
}

// Looks at the operands of an operator that is about to run for what pending copies are at work on.
class RaceSearch final : public OperandSink {
 public:
  explicit RaceSearch(trace::OperatorId op) noexcept : schema_(schema_of(op)) {}

  void tensor(int argument, int, const c10::TensorImpl* tensor) override {
    const c10::StorageImpl* storage = TensorFields::storage(tensor);
    if (hit || storage == nullptr) return;
    const Access access = access_to(schema_, argument);
    if (access == Access::none) return;
    const bool writes = access == Access::write;
    StreamKey stream;
    if (is_cpu(tensor)) {
      hit = pending_copies.hit_by_host(memory_of(tensor), writes);
      if (!hit) return;
      race = race_of_host(*hit, writes);
    } else if (is_cuda(tensor) && current_stream(tensor, &stream)) {
      hit = pending_copies.hit_by_stream(memory_of(tensor), stream, writes);
      if (hit) race = hit->to_host ? trace::RaceKind::stream_wrote_source : trace::RaceKind::stream_used_target;
    }
  }
  void generator(int, const at::Generator&) override {}
  void device(int, c10::Device) override {}
  void storage(int, const at::Storage&) override {}

  std::optional<PendingCopy> hit;
  trace::RaceKind race = trace::RaceKind::none;

 private:
  const std::string_view schema_;
};

void settle_number(ThreadState& state, trace::OperatorId op) noexcept {
  trace::TrafficPayload* number = state.number;
  state.number = nullptr;
  attention.fetch_and(~kNumberTaken, std::memory_order_relaxed);
  const void* thread = python_thread(state);
  if (thread == nullptr) return;
  const void* frame = innermost_frame(current_frame(thread));
  if (frame != nullptr && frame == state.number_frame && instruction_address(frame) == state.number_address) {
    trace::Recorder::set_taker(number, op);
  }
}

}  // namespace

bool is_mask_on_device(const c10::TensorImpl* index) noexcept {
  const caffe2::TypeMeta type = TensorFields::dtype(index);
  return is_cuda(index) && (type == caffe2::TypeMeta::Make<bool>() || type == caffe2::TypeMeta::Make<std::uint8_t>());
}

WatchedCall::WatchedCall(trace::OperatorId op, bool nested) noexcept
    : state_(thread_state()),
      op_(nested ? running_operator(state_) : op),
      nested_(nested),
      watched_(state_.watching++ == 0 && !state_.busy) {}

void WatchedCall::copied(const at::Tensor& to, const at::Tensor& from, bool non_blocking) const noexcept {
  const c10::TensorImpl* target = implementation(to);
  const c10::TensorImpl* source = implementation(from);
  if (!watched_) return;
  const bool to_host = is_cpu(target) && is_cuda(source);
  if (!to_host && !(is_cuda(target) && is_cpu(source))) return copied_on_host(target, source);
  const std::uint64_t bytes = bytes_of(source);
  if (bytes == 0 || bytes_of(target) == 0) return;
  const c10::TensorImpl* host = to_host ? target : source;
  const c10::TensorImpl* device = to_host ? source : target;
  StreamKey stream;
  if (!current_stream(device, &stream)) return;

  const bool asked = non_blocking && can_be_asynchronous(schema_of(op_));
  const bool pinned = non_blocking && is_pinned(host);
  Event event;
  event.kind = asked && !pinned ? trace::TrafficKind::unpinned_copy : trace::TrafficKind::copy;
  event.op = op_;
  event.site = place(state_);
  event.bytes = bytes;
  event.flags =
      static_cast<std::uint8_t>((is_foreign(event.site) ? trace::kForeignPlace : 0) | (to_host ? trace::kToHost : 0));
  if (event.kind == trace::TrafficKind::unpinned_copy) {
    if (const auto other = find_copy(TensorFields::storage(host), Copied::pinned)) event.cause = other->site;
  }
  const PendingCopy copy{memory_of(host), memory_of(device), to_host, is_foreign(event.site), event.site.id,
                         bytes,           begin_of(host)};
  meet_pending(copy, stream);
  count(state_, event, [&](OperandList& operands) {
    if (!nested_) operands.tensor(0, -1, target);
    operands.tensor(nested_ ? 0 : 1, -1, source);
    if (pinned && !operands.records().empty()) {
      operands.records()[to_host ? 0 : operands.records().size() - 1].flags |= trace::kPinned;
    }
  });
  if (non_blocking && pinned) {
    if (waits_are_seen()) pending_copies.queue(stream, copy);
  } else {
    pending_copies.host_saw_stream(stream);
  }
}

// A copy is in order with what is queued on its own stream.
void WatchedCall::meet_pending(const PendingCopy& copy, StreamKey stream) const noexcept {
  if (attention.load(std::memory_order_relaxed) == 0) return;
  trace::RaceKind race = copy.to_host ? trace::RaceKind::host_wrote_source : trace::RaceKind::stream_used_target;
  auto hit = pending_copies.hit_by_copy(copy.host, stream, copy.to_host);
  if (hit) {
    if (hit->to_host) race = trace::RaceKind::stream_used_target;
  } else {
    hit = pending_copies.hit_by_stream(copy.device, stream, !copy.to_host);
    if (hit && hit->to_host) race = trace::RaceKind::stream_wrote_source;
  }
  if (hit) tell_of_race(state_, race, op_, *hit, nullptr, nullptr);
}

// On one side of the host or of a device; only conversions and what may return a view are not looked at already.
void WatchedCall::copied_on_host(const c10::TensorImpl* to, const c10::TensorImpl* from) const noexcept {
  if (attention.load(std::memory_order_relaxed) == 0 || !is_cpu(to) || !is_cpu(from)) return;
  const std::string_view schema = schema_of(op_);
  if (!can_be_asynchronous(schema) && !returns_view(schema)) return;
  if (const auto hit = pending_copies.hit_by_host(memory_of(from), false)) {
    tell_of_race(state_, trace::RaceKind::host_read_target, op_, *hit, nullptr, nullptr);
    return;
  }
  if (const auto hit = pending_copies.hit_by_host(memory_of(to), true)) {
    tell_of_race(state_, race_of_host(*hit, true), op_, *hit, nullptr, nullptr);
  }
}

trace::TrafficPayload* WatchedCall::count_wait(const c10::TensorImpl* tensor, std::uint64_t bytes) const noexcept {
  StreamKey stream;
  if (!current_stream(tensor, &stream)) return nullptr;
  pending_copies.host_saw_stream(stream);
  Event event;
  event.kind = trace::TrafficKind::wait;
  event.op = op_;
  event.site = place(state_);
  event.bytes = bytes;
  event.flags = is_foreign(event.site) ? trace::kForeignPlace : 0;
  return count(state_, event, [&](OperandList& operands) {
    if (!nested_ || asks_for_value(op_)) operands.tensor(0, -1, tensor);
  });
}

void WatchedCall::waited(const at::Tensor& tensor) const noexcept {
  if (watched_ && is_cuda(implementation(tensor))) count_wait(implementation(tensor), 0);
}

void WatchedCall::indexed(const at::Tensor& tensor,
                          const c10::List<std::optional<at::Tensor>>& indices) const noexcept {
  if (!watched_ || !is_cuda(implementation(tensor))) return;
  for (const auto& element : indices) {
    const c10::IValue& value = element.get();
    if (!value.isTensor() || !is_mask_on_device(value.unsafeToTensorImpl())) continue;
    count_wait(value.unsafeToTensorImpl(), 0);
    return;
  }
}

void WatchedCall::indexed(const at::Tensor& tensor, const at::Tensor& mask) const noexcept {
  if (watched_ && is_cuda(implementation(tensor))) count_wait(implementation(mask), 0);
}

// A number that the program asks for by itself is no operator's doing. Whether one takes it shows at the next operator:
// PyTorch's bindings convert arguments right before the call, in the same instruction of the same frame.
void WatchedCall::took_number(const at::Tensor& tensor) const noexcept {
  constexpr std::uint32_t kLooks = 8;
  if (!watched_ || !is_cuda(implementation(tensor))) return;
  trace::TrafficPayload* number =
      count_wait(implementation(tensor), TensorFields::dtype(implementation(tensor)).itemsize());
  if (number == nullptr || number->repeats >= kLooks || number->taker != trace::OperatorId::none) return;
  const void* thread = python_thread(state_);
  if (name_of(op_) != "aten::item" || thread == nullptr) return;
  state_.number_frame = innermost_frame(current_frame(thread));
  if (state_.number_frame == nullptr) return;
  state_.number_address = instruction_address(state_.number_frame);
  state_.number = number;
  attention.fetch_or(kNumberTaken, std::memory_order_relaxed);
}

// In CUDA's kernel of the operator, which calls `.item()` on it.
void WatchedCall::took_value(const at::Tensor& value) const noexcept {
  const c10::TensorImpl* number = implementation(value);
  if (!watched_ || nested_ || !is_cuda(number)) return;
  trace::TrafficPayload* counted = count_wait(number, TensorFields::dtype(number).itemsize());
  if (counted != nullptr && counted->taker == trace::OperatorId::none) trace::Recorder::set_taker(counted, op_);
}

void attend(ThreadState& state, trace::OperatorId op, const ArgumentsView& arguments, const void* caller) noexcept {
  if (state.busy || state.gives_away) return;
  if (state.number != nullptr && name_of(op) != "aten::item") settle_number(state, op);
  if ((attention.load(std::memory_order_relaxed) & ~kNumberTaken) == 0) return;
  RaceSearch search(op);
  try {
    arguments.visit(search);
  } catch (...) {
    return;
  }
  if (search.hit) tell_of_race(state, search.race, op, *search.hit, &arguments, caller);
}

void note_outside_reader(const at::Tensor& tensor) noexcept {
  ThreadState& state = thread_state();
  const c10::TensorImpl* target = implementation(tensor);
  if (!waits_are_seen() || state.busy || !is_cpu(target) || TensorFields::storage(target) == nullptr) return;
  if (state.epoch != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) return;
  const Extent memory = memory_of(target);
  if (const auto hit = pending_copies.hit_outside(memory)) {
    constexpr auto kRace = trace::RaceKind::numpy_read_target;
    pending_copies.remember_outside(memory,
                                    tell_of_race(state, kRace, trace::OperatorId::none, *hit, nullptr, nullptr));
  }
  if (is_pinned(target)) pending_copies.give_away(begin_of(target));
}

// The simulation's own copies touch memory, too, which is an operator's doing, also on the threads that OpenMP shares a
// large one out to. None of those runs Python.
void note_host_touch(const void* address, bool writes) noexcept {
  ThreadState& state = thread_state();
  if (state.busy || state.depth != 0 || !runtime.recorder->active() || python_thread(state) == nullptr) return;
  if (state.epoch != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) start_thread(state);
  const auto hit = pending_copies.hit_by_touch(address, writes);
  if (!hit) return;
  const bool told = hit->outside != nullptr && hit->outside->site == place(state).id;
  if (told) return;  // where the array was made
  tell_of_race(state, race_of_host(*hit, writes), trace::OperatorId::none, *hit, nullptr, nullptr);
}

void note_memory_reader(const void* begin, std::uint64_t bytes, trace::OperatorId op) noexcept {
  ThreadState& state = thread_state();
  if (state.busy || state.epoch != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) return;
  if (const auto hit = pending_copies.hit_by_reader(begin, bytes)) {
    tell_of_race(state, trace::RaceKind::host_read_target, op, *hit, nullptr, nullptr);
  }
}

}  // namespace devsan::hooks
