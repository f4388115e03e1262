#include "hooks/torch_bridge/collectives.h"

#include <algorithm>
#include <exception>
#include <utility>

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
// bool c10d::Work::isSuccess() const, of the base class: whether it holds no exception.
bool work_holds_no_exception(const void* work) __asm__("_ZNK4c10d4Work9isSuccessEv") DEVSAN_TORCH_FUNCTION;
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

// What an object of a class of torch's own holds. Python's classes have none.
const void* held_by(const c10::IValue& value) noexcept {
  if (!value.isObject()) return nullptr;
  const c10::IValue& capsule = value.toObjectRef().getSlot(0);
  return capsule.isCapsule() ? capsule.toCapsule().get() : nullptr;
}

// The calls through the dispatcher that are in progress on one thread. Deeper ones are not seen.
class DispatchedCollectives {
 public:
  void begin(const at::RecordFunction& guard, const SchemaOperator& op, BoxedArguments arguments) noexcept;
  void end(const at::RecordFunction& guard) noexcept;

 private:
  static constexpr std::size_t kMostCalls = 4;
  struct Call {
    const void* guard = nullptr;
    int exceptions = 0;
    EnteredCollective entered;
  };

  Call calls_[kMostCalls] = {};
  std::size_t count_ = 0;
};

thread_local constinit DispatchedCollectives dispatched_collectives{};

void DispatchedCollectives::begin(const at::RecordFunction& guard, const SchemaOperator& op,
                                  BoxedArguments arguments) noexcept {
  if (count_ == kMostCalls || static_cast<std::size_t>(op.group_at) >= arguments.size()) return;
  const void* const group = held_by(arguments[static_cast<std::size_t>(op.group_at)]);
  if (group == nullptr) return;
  CollectiveSizes sizes;
  for (const c10::IValue& value : arguments) sizes.add(value);
  const auto at = static_cast<std::size_t>(op.peer_at);
  const int peer = at < arguments.size() && arguments[at].isInt() ? static_cast<int>(arguments[at].toInt()) : -1;
  ThreadState& state = thread_state();
  Call& call = calls_[count_++];
  call.guard = &guard;
  call.exceptions = std::uncaught_exceptions();
  call.entered.begin(state, group, op, sizes, peer, place(state));
}

void DispatchedCollectives::end(const at::RecordFunction& guard) noexcept {
  if (count_ == 0 || calls_[count_ - 1].guard != &guard) return;
  Call& call = calls_[--count_];
  if (std::uncaught_exceptions() > call.exceptions) return call.entered.failed();
  const auto& outputs = guard.outputs();
  call.entered.returned(outputs.empty() ? nullptr : held_by(outputs.back()));
}

// A thread waits for what a collective has returned.
class WaitForWork {
 public:
  explicit WaitForWork(const void* work) noexcept
      : collective_(collective_log.of_work(work)), exceptions_(std::uncaught_exceptions()) {
    if (collective_) trace::wait_begins(collective_, trace::wall_clock_ns());
  }
  ~WaitForWork() {
    trace::wait_ends(collective_);
    const bool failed = std::uncaught_exceptions() > exceptions_;
    if (failed || done_) CollectiveLog::ended(collective_, failed);
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

void EnteredCollective::begin(ThreadState& state, const void* group, const SchemaOperator& op,
                              const CollectiveSizes& sizes, int peer, CallSite site) noexcept {
  recorded_ = false;
  if (runtime.host->options.hang_after > 0) watch_for_hangs();
  const GroupTurn turn = enter_group(group, op.point_to_point);
  if (turn.group == 0) return;
  trace::CollectiveFacts facts{};
  facts.entered_ns = trace::wall_clock_ns();
  facts.sequence = turn.sequence;
  facts.bytes = sizes.bytes[0];
  facts.other_bytes = sizes.bytes[1];
  facts.group = turn.group;
  facts.step = runtime.step.load(std::memory_order_relaxed);
  facts.tid = state.tid;
  facts.site = site.id;
  facts.dtype = sizes.device != 0 ? dtype_text(sizes.dtype) : trace::StringId::none;
  facts.peer = peer;
  facts.op = op.id;
  facts.device = device_slot(sizes.device);
  facts.phase = state.backward_depth != 0            ? trace::Phase::backward
                : (site.marks & kOptimizerCode) != 0 ? trace::Phase::optimizer
                                                     : trace::Phase::other;
  collective_ = collective_log.enter(facts, op.point_to_point ? trace::kPointToPoint : 0);
  on_real_device_ = is_cuda(sizes.device) && !devices_are_simulated();
  if (on_real_device_) collective_log.begins_to_record_events();
  // Of what is point-to-point, Gloo learns the end only from a thread that waits for it.
  tells_end_ = (turn.tells_end || devices_are_simulated()) && !op.point_to_point;
  returns_at_end_ = !on_real_device_ || op.barrier;
  event_count_ = 0;
  around_ = std::exchange(state.collective, this);
  recorded_ = true;
}

void EnteredCollective::records_event(const void* event, std::int64_t stream) noexcept {
  if (event_count_ == kEvents) {
    std::copy(events_ + 1, events_ + kEvents, events_);
    std::copy(streams_ + 1, streams_ + kEvents, streams_);
    --event_count_;
  }
  if (on_real_device_) collective_log.event_is_recorded(event);
  events_[event_count_] = event;
  streams_[event_count_++] = stream;
}

// On the stream of its work torch records an event before the work where it measures times, one after it, and then that
// of the future of its results, which nobody asks for. A part of what is coalesced has the last one alone.
const void* EnteredCollective::end_event() const noexcept {
  std::size_t seen = 0;
  for (std::size_t back = event_count_; back > 0; --back) {
    if (streams_[back - 1] != streams_[event_count_ - 1]) continue;
    if (++seen == 2) return events_[back - 1];
  }
  return nullptr;
}

bool EnteredCollective::leave() noexcept {
  if (!recorded_) return false;
  thread_state().collective = around_;
  if (on_real_device_) collective_log.has_recorded_events();
  return true;
}

void EnteredCollective::failed() noexcept {
  if (leave()) CollectiveLog::ended(collective_, true);
}

void EnteredCollective::returned(const void* work) noexcept {
  if (!recorded_) return;
  const bool captured = on_real_device_ && runtime.host->device_calls->captures();
  const void* const event = on_real_device_ && !captured ? end_event() : nullptr;
  if (event != nullptr) collective_log.ends_with_event(event, collective_);
  leave();
  if (work == nullptr && returns_at_end_ && !captured) return CollectiveLog::ended(collective_, false);
  if (work != nullptr) collective_log.ends_with_work(work, collective_);
  const bool told = event != nullptr || (!on_real_device_ && tells_end_ && work_is_finished != nullptr);
  trace::issued(collective_, captured ? trace::kCaptured : told ? 0 : trace::kEndNotTold);
  // It may have ended before anybody knew its address: where a rank is gone, Gloo fails at once on its own thread.
  if (!on_real_device_ && work_is_finished != nullptr && work_is_finished(const_cast<void*>(work))) {
    CollectiveLog::ended(collective_, work_holds_no_exception != nullptr && !work_holds_no_exception(work));
  }
}

void collective_begins(const at::RecordFunction& guard, const SchemaOperator& op, BoxedArguments arguments) noexcept {
  dispatched_collectives.begin(guard, op, arguments);
}

void collective_returns(const at::RecordFunction& guard) noexcept {
  dispatched_collectives.end(guard);
}

void collective_records_event(const void* event, std::int64_t stream) noexcept {
  if (EnteredCollective* const entered = thread_state().collective) entered->records_event(event, stream);
}

}  // namespace devsan::hooks
