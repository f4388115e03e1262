#include "hooks/torch_bridge/collectives.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/events/collective_log.h"
#include "hooks/inprocess/events/hang_watch.h"
#include "hooks/inprocess/events/operator_table.h"
#include "hooks/inprocess/interpreter/frame_marks.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/torch_bridge/collective_groups.h"
#include "hooks/torch_bridge/event.h"
#include "hooks/torch_bridge/operand_list.h"
#include "hooks/torch_bridge/tensor_fields.h"
#include "hooks/torch_bridge/torch_function.h"
#include "trace/clock.h"

namespace devsan::hooks {

// bool c10d::Work::isCompleted(), of the base class: whether torch has called finish().
bool work_is_finished(void* work) __asm__("_ZN4c10d4Work11isCompletedEv") DEVSAN_TORCH_FUNCTION;
// void c10d::Work::finish(std::exception_ptr)
void finish_work(void* work, void* exception) __asm__("_ZN4c10d4Work6finishENSt15__exception_ptr13exception_ptrE")
    DEVSAN_TORCH_FUNCTION;
// bool c10d::Work::wait(std::chrono::milliseconds), of the base class and of those of Gloo that have their own
bool wait_for_work(void* work, std::int64_t timeout) __asm__(
    "_ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE") DEVSAN_TORCH_FUNCTION;
bool wait_for_send(void* work, std::int64_t timeout) __asm__(
    "_ZN4c10d16ProcessGroupGloo8SendWork4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE") DEVSAN_TORCH_FUNCTION;
bool wait_for_receive(void* work, std::int64_t timeout) __asm__(
    "_ZN4c10d16ProcessGroupGloo8RecvWork4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE") DEVSAN_TORCH_FUNCTION;

namespace {

struct OperandSizes {
  const c10::TensorImpl* first = nullptr;
  std::uint64_t bytes[2] = {0, 0};
  std::size_t arguments = 0;  // that have tensors, of those counted

  void add(const c10::IValue& value) noexcept {
    std::uint64_t* const sum = &bytes[std::min<std::size_t>(arguments, 1)];
    if (add_to(*sum, value)) ++arguments;
  }

 private:
  bool add_to(std::uint64_t& sum, const c10::IValue& value) noexcept {
    if (value.isTensor()) return add_tensor(sum, value.unsafeToTensorImpl());
    if (!value.isList()) return false;
    bool any = false;
    for (const c10::IValue& element : value.toListRef()) {
      if (!element.isTensor() && !element.isList()) break;
      any = add_to(sum, element) || any;
    }
    return any;
  }

  bool add_tensor(std::uint64_t& sum, const c10::TensorImpl* tensor) noexcept {
    if (tensor == c10::UndefinedTensorImpl::singleton()) return false;
    if (first == nullptr) first = tensor;
    if (!TensorFields::symbolic(tensor)) {
      const auto elements = static_cast<std::uint64_t>(c10::multiply_integers(TensorFields::sizes(tensor)));
      sum += elements * TensorFields::dtype(tensor).itemsize();
    }
    return true;
  }
};

// What an object of a class of torch's own holds. Python's classes have none.
const void* held_by(const c10::IValue& value) noexcept {
  if (!value.isObject()) return nullptr;
  const c10::IValue& capsule = value.toObjectRef().getSlot(0);
  return capsule.isCapsule() ? capsule.toCapsule().get() : nullptr;
}

// The calls in progress on one thread. Deeper ones are not seen.
class CollectiveCalls {
 public:
  void begin(const at::RecordFunction& guard, const SchemaOperator& op, BoxedArguments arguments) noexcept;
  void end(const at::RecordFunction& guard) noexcept;
  void records_event(const void* event, std::int64_t stream) noexcept;

 private:
  static constexpr std::size_t kMostCalls = 4;
  static constexpr std::size_t kEvents = 8;
  struct Call {
    const void* guard = nullptr;
    trace::CollectiveRef collective;
    int exceptions = 0;
    bool on_real_device = false;
    bool tells_end = false;
    std::size_t event_count = 0;
    const void* events[kEvents] = {};
    std::int64_t streams[kEvents] = {};
  };

  static const void* end_event(const Call& call) noexcept;

  Call calls_[kMostCalls] = {};
  std::size_t count_ = 0;
};

thread_local constinit CollectiveCalls collective_calls{};

void CollectiveCalls::begin(const at::RecordFunction& guard, const SchemaOperator& op,
                            BoxedArguments arguments) noexcept {
  if (count_ == kMostCalls || static_cast<std::size_t>(op.group_at) >= arguments.size()) return;
  ThreadState& state = thread_state();
  if (runtime.host->options.hang_after > 0) watch_for_hangs();
  const void* const group = held_by(arguments[static_cast<std::size_t>(op.group_at)]);
  if (group == nullptr) return;
  OperandSizes sizes;
  for (const c10::IValue& value : arguments) sizes.add(value);
  const GroupTurn turn = enter_group(group, op.point_to_point);
  if (turn.group == 0) return;
  const CallSite site = place(state);
  const DeviceKey device = sizes.first != nullptr ? TensorFields::device(sizes.first) : 0;
  trace::CollectiveFacts facts{};
  facts.entered_ns = trace::wall_clock_ns();
  facts.sequence = turn.sequence;
  facts.bytes = sizes.bytes[0];
  facts.other_bytes = sizes.bytes[1];
  facts.group = turn.group;
  facts.step = runtime.step.load(std::memory_order_relaxed);
  facts.tid = state.tid;
  facts.site = site.id;
  facts.dtype = sizes.first != nullptr ? dtype_text(TensorFields::dtype(sizes.first)) : trace::StringId::none;
  const auto peer = static_cast<std::size_t>(op.peer_at);
  facts.peer = peer < arguments.size() && arguments[peer].isInt() ? static_cast<int>(arguments[peer].toInt()) : -1;
  facts.op = op.id;
  facts.device = device_slot(device);
  facts.phase = state.backward_depth != 0            ? trace::Phase::backward
                : (site.marks & kOptimizerCode) != 0 ? trace::Phase::optimizer
                                                     : trace::Phase::other;
  Call& call = calls_[count_++];
  call.guard = &guard;
  call.collective = collective_log.enter(facts, op.point_to_point ? trace::kPointToPoint : 0);
  call.exceptions = std::uncaught_exceptions();
  call.on_real_device = is_cuda(device) && !devices_are_simulated();
  call.tells_end = turn.tells_end || devices_are_simulated();
  call.event_count = 0;
}

void CollectiveCalls::records_event(const void* event, std::int64_t stream) noexcept {
  if (count_ == 0) return;
  Call& call = calls_[count_ - 1];
  if (call.event_count == kEvents) {
    std::copy(call.events + 1, call.events + kEvents, call.events);
    std::copy(call.streams + 1, call.streams + kEvents, call.streams);
    --call.event_count;
  }
  call.events[call.event_count] = event;
  call.streams[call.event_count++] = stream;
}

// On the stream of its work torch records an event before the work where it measures times, one after it, and then that
// of the future of its results, which nobody asks for.
const void* CollectiveCalls::end_event(const Call& call) noexcept {
  const void* found = nullptr;
  std::size_t seen = 0;
  for (std::size_t back = call.event_count; back > 0 && seen < 2; --back) {
    if (call.streams[back - 1] != call.streams[call.event_count - 1]) continue;
    found = call.events[back - 1];
    ++seen;
  }
  return found;
}

void CollectiveCalls::end(const at::RecordFunction& guard) noexcept {
  if (count_ == 0 || calls_[count_ - 1].guard != &guard) return;
  const Call& call = calls_[--count_];
  if (std::uncaught_exceptions() > call.exceptions) {
    return trace::ended(call.collective, trace::CollectiveState::failed, trace::wall_clock_ns());
  }
  const auto& outputs = guard.outputs();
  const void* const work = outputs.empty() ? nullptr : held_by(outputs.back());
  if (work == nullptr) {  // it does not come back before all is done
    return trace::ended(call.collective, trace::CollectiveState::finished, trace::wall_clock_ns());
  }
  const bool captured = call.on_real_device && runtime.host->device_calls->captures();
  const void* const event = call.on_real_device && !captured ? end_event(call) : nullptr;
  if (event != nullptr) collective_log.ends_with_event(event, call.collective);
  collective_log.ends_with_work(work, call.collective);
  const bool told = event != nullptr || (!call.on_real_device && call.tells_end && work_is_finished != nullptr);
  trace::issued(call.collective, captured ? trace::kCaptured : told ? 0 : trace::kEndNotTold);
  // It may have ended before anybody knew its address.
  if (!call.on_real_device && work_is_finished != nullptr && work_is_finished(const_cast<void*>(work))) {
    collective_log.work_ended(work, false);
  }
}

// A thread waits for what a collective has returned.
class WaitForWork {
 public:
  explicit WaitForWork(const void* work) noexcept
      : collective_(collective_log.of_work(work)), exceptions_(std::uncaught_exceptions()) {
    trace::wait_begins(collective_, trace::wall_clock_ns());
  }
  ~WaitForWork() {
    trace::wait_ends(collective_);
    const bool failed = std::uncaught_exceptions() > exceptions_;
    if (!failed && !done_) return;
    trace::ended(collective_, failed ? trace::CollectiveState::failed : trace::CollectiveState::finished,
                 trace::wall_clock_ns());
  }
  WaitForWork(const WaitForWork&) = delete;
  WaitForWork& operator=(const WaitForWork&) = delete;

  bool came_back(bool done) noexcept { return done_ = done; }

 private:
  const trace::CollectiveRef collective_;
  const int exceptions_;
  bool done_ = false;
};

void finish_work_wrapper(void* work, void* exception) {
  // A std::exception_ptr is the exception's address.
  const bool failed = *static_cast<void* const*>(exception) != nullptr;
  finish_work(work, exception);
  collective_log.work_ended(work, failed);
}

bool wait_for_work_wrapper(void* work, std::int64_t timeout) {
  WaitForWork wait(work);
  return wait.came_back(wait_for_work(work, timeout));
}

bool wait_for_send_wrapper(void* work, std::int64_t timeout) {
  WaitForWork wait(work);
  return wait.came_back(wait_for_send(work, timeout));
}

bool wait_for_receive_wrapper(void* work, std::int64_t timeout) {
  WaitForWork wait(work);
  return wait.came_back(wait_for_receive(work, timeout));
}

#define DEVSAN_WAITS(function)                                                                           \
  {                                                                                                      \
    .real = reinterpret_cast<void*>(&function), .wrapper = reinterpret_cast<void*>(&function##_wrapper), \
    .in_tables = true                                                                                    \
  }
DEVSAN_REPLACEMENTS const Replacement collective_replacements[] = {
    {reinterpret_cast<void*>(&finish_work), reinterpret_cast<void*>(&finish_work_wrapper)},
    DEVSAN_WAITS(wait_for_work),
    DEVSAN_WAITS(wait_for_send),
    DEVSAN_WAITS(wait_for_receive),
};
#undef DEVSAN_WAITS

}  // namespace

void collective_begins(const at::RecordFunction& guard, const SchemaOperator& op, BoxedArguments arguments) noexcept {
  collective_calls.begin(guard, op, arguments);
}

void collective_returns(const at::RecordFunction& guard) noexcept {
  collective_calls.end(guard);
}

void collective_records_event(const void* event, std::int64_t stream) noexcept {
  collective_calls.records_event(event, stream);
}

}  // namespace devsan::hooks
