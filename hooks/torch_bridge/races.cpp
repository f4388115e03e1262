#include "hooks/torch_bridge/races.h"

#include <c10/util/FunctionRef.h>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/schema.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/interpreter/python_thread.h"
#include "hooks/torch_bridge/event.h"
#include "hooks/torch_bridge/examine.h"
#include "hooks/torch_bridge/meeting.h"
#include "hooks/torch_bridge/operand_list.h"
#include "hooks/torch_bridge/tensor_memory.h"
#include "hooks/torch_bridge/thread_start.h"

namespace devsan::hooks {

namespace {

// `describe` gives the operands of the first race at its site.
trace::TrafficPayload* tell_of_race(ThreadState& state, trace::RaceKind race, trace::OperatorId op,
                                    const PendingCopy& copy,
                                    c10::function_ref<void(OperandList&, trace::SiteId)> describe) noexcept {
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
  return count_event(state, event, [&](OperandList& operands) { describe(operands, event.site.id); });
}

void nothing_known(OperandList&, trace::SiteId) noexcept {}

// Names need the interpreter, which those who copy may not have.
auto ends_of(const CopyEnds& ends) noexcept {
  return [&ends](OperandList& operands, trace::SiteId) { ends.list(operands); };
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
    if (is_cpu(tensor)) {
      hit = pending_copies.hit_by_host(memory_of(tensor), writes);
      if (!hit) return;
      race = race_of_host(*hit, writes);
    } else if (is_cuda(tensor)) {
      hit = pending_copies.hit_by_stream(memory_of(tensor), current_stream(tensor), writes);
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

}  // namespace

void meet_pending(ThreadState& state, trace::OperatorId op, const PendingCopy& copy, StreamKey stream,
                  const CopyEnds& ends) noexcept {
  if (attention.load(std::memory_order_relaxed) == 0) return;
  trace::RaceKind race = copy.to_host ? trace::RaceKind::host_wrote_source : trace::RaceKind::stream_used_target;
  auto hit = pending_copies.hit_by_copy(copy.host, stream, copy.to_host);
  if (hit) {
    if (hit->to_host) race = trace::RaceKind::stream_used_target;
  } else {
    hit = pending_copies.hit_by_stream(copy.device, stream, !copy.to_host);
    if (hit && hit->to_host) race = trace::RaceKind::stream_wrote_source;
  }
  if (hit) tell_of_race(state, race, op, *hit, ends_of(ends));
}

void meet_on_host(ThreadState& state, trace::OperatorId op, const CopyEnds& ends) noexcept {
  if (attention.load(std::memory_order_relaxed) == 0 || !is_cpu(ends.to) || !is_cpu(ends.from)) return;
  const std::string_view schema = schema_of(op);
  if (!can_be_asynchronous(schema) && !returns_view(schema)) return;
  if (const auto hit = pending_copies.hit_by_host(memory_of(ends.from), false)) {
    tell_of_race(state, trace::RaceKind::host_read_target, op, *hit, ends_of(ends));
    return;
  }
  if (const auto hit = pending_copies.hit_by_host(memory_of(ends.to), true)) {
    tell_of_race(state, race_of_host(*hit, true), op, *hit, ends_of(ends));
  }
}

void meet_operands(ThreadState& state, trace::OperatorId op, const ArgumentsView& arguments,
                   const void* caller) noexcept {
  RaceSearch search(op);
  try {
    arguments.visit(search);
  } catch (...) {
    return;
  }
  if (!search.hit) return;
  tell_of_race(state, search.race, op, *search.hit, [&](OperandList& operands, trace::SiteId site) {
    arguments.visit(operands);
    if (!may_take_gil(state, caller)) return;
    const PythonSection section;
    find_names(state.outer.python, site, operands);
  });
}

void note_outside_reader(const at::Tensor& tensor) noexcept {
  ThreadState& state = thread_state();
  const c10::TensorImpl* target = implementation(tensor);
  if (attention.load(std::memory_order_relaxed) == 0 && !pending_copies.closes_pages()) return;
  if (state.busy || !is_cpu(target) || TensorFields::storage(target) == nullptr) return;
  if (state.epoch != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) return;
  const Extent memory = memory_of(target);
  if (const auto hit = pending_copies.hit_outside(memory)) {
    constexpr auto kRace = trace::RaceKind::numpy_read_target;
    const auto describe = [&](OperandList& operands, trace::SiteId) {
      operands.tensor(0, -1, target);
      for (trace::OperandRecord& operand : operands.records()) {
        operand.argument = runtime.recorder->intern_string("self");  // of `x.numpy()`, which no schema names
      }
    };
    pending_copies.remember_outside(memory, tell_of_race(state, kRace, trace::OperatorId::none, *hit, describe));
  }
  if (pending_copies.closes_pages() && is_pinned(target)) pending_copies.give_away(begin_of(target));
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
  tell_of_race(state, race_of_host(*hit, writes), trace::OperatorId::none, *hit, nothing_known);
}

void note_memory_reader(const void* begin, std::uint64_t bytes, trace::OperatorId op) noexcept {
  ThreadState& state = thread_state();
  if (state.busy || state.epoch != runtime.epoch_page->epoch.load(std::memory_order_relaxed)) return;
  if (const auto hit = pending_copies.hit_by_reader(begin, bytes)) {
    tell_of_race(state, trace::RaceKind::host_read_target, op, *hit, nothing_known);
  }
}

}  // namespace devsan::hooks
