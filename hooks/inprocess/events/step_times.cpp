#include "hooks/inprocess/events/step_times.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/common/turn.h"
#include "trace/clock.h"
#include "trace/memory_series.h"
#include "trace/step_layout.h"

namespace devsan::hooks {
namespace {

constexpr std::uint32_t kNoStep = ~std::uint32_t{0};

// Of one process; a forked child has its own. Times are of CLOCK_MONOTONIC, 0 where it has not come to that.
struct StepClock {
  std::uint64_t epoch = 0;
  trace::StepSeriesPayload* series = nullptr;
  trace::DataWaitsPayload* waits = nullptr;
  bool waits_were_tried = false;        // the trace may have no room for them
  const ThreadState* thread = nullptr;  // that began the iteration
  trace::StepTime now{};
  trace::DataWait waited{};
  std::uint64_t waited_after_backward = 0;  // whose part of the iteration is known when the optimizer runs, or the next
  bool kept = false;
  std::int64_t begin = 0;
  std::int64_t backward_begin = 0;
  std::int64_t backward_end = 0;
  std::int64_t optimizer_begin = 0;
};

constinit StepClock steps{};
constinit std::atomic<std::int64_t> optimizer_end{0};
constinit std::atomic_flag in_use{};

std::uint64_t length(std::int64_t from, std::int64_t to) noexcept {
  return from > 0 && to > from ? static_cast<std::uint64_t>(to - from) : 0;
}

bool is_own() noexcept {
  return steps.series != nullptr && steps.epoch == runtime.epoch_page->epoch.load(std::memory_order_relaxed);
}

void store_current() noexcept {
  trace::store_sample(steps.series->current, steps.now);
}

void store_current_wait() noexcept {
  if (steps.waits == nullptr) return;
  trace::DataWait wait = steps.waited;
  wait.rest_ns = steps.waited_after_backward;
  trace::store_sample(steps.waits->current, wait);
}

template <class Series>
void count_step(Series* series) noexcept {
  if (series != nullptr) trace::atom(series->offered).store(series->offered + 1, std::memory_order_release);
}

void end_step(std::int64_t now) noexcept {
  if (!steps.kept) {
    count_step(steps.series);
    return count_step(steps.waits);
  }
  trace::StepTime& step = steps.now;
  step.optimizer_ns = length(steps.optimizer_begin, optimizer_end.load(std::memory_order_relaxed));
  const std::uint64_t all = length(steps.begin, now);
  const std::uint64_t known = trace::height_of(step);
  step.rest_ns = all - std::min(all, known);
  trace::add_sample(steps.series, step);
  steps.waited.rest_ns = steps.waited_after_backward;
  steps.waited.step_ns = trace::height_of(step);
  trace::add_sample(steps.waits, steps.waited);
}

void begin_step(std::uint32_t step, std::int64_t now) noexcept {
  trace::StepSeriesPayload* const series = steps.series;
  StepClock fresh{};
  fresh.epoch = steps.epoch;
  fresh.series = series;
  fresh.waits = steps.waits;
  fresh.waits_were_tried = steps.waits_were_tried;
  fresh.thread = &thread_state();
  fresh.kept = trace::keeps_next(*series);
  fresh.begin = now;
  steps = fresh;
  steps.now.begin_ns = trace::wall_clock_ns();
  steps.now.step = step;
  steps.now.number = static_cast<std::uint32_t>(series->offered) + 1;
  steps.waited.step = step;
  steps.waited.number = steps.now.number;
  optimizer_end.store(0, std::memory_order_relaxed);
  runtime.timed_step.store(steps.kept ? step : kNoStep, std::memory_order_relaxed);
  store_current();
  store_current_wait();
}

// From the first wait on, with the iterations at the same places as in the record of steps.
void begin_waits() noexcept {
  if (steps.waits != nullptr || steps.waits_were_tried) return;
  steps.waits_were_tried = true;
  steps.waits = runtime.recorder->add_data_waits();
  if (steps.waits == nullptr) return;
  steps.waits->stride = steps.series->stride;
  trace::atom(steps.waits->offered).store(steps.series->offered, std::memory_order_release);
}

// What the thread has waited since the backward lies between that and what begins here.
void close_between(std::int64_t now) noexcept {
  steps.now.between_ns += length(steps.backward_end, now);
  steps.waited.between_ns += std::exchange(steps.waited_after_backward, 0);
}

std::int64_t clock_now() noexcept {
  return trace::clock_ns(CLOCK_MONOTONIC);
}

}  // namespace

void note_step_begins(std::uint32_t step) noexcept {
  const Turn turn(in_use);
  const std::uint64_t epoch = runtime.epoch_page->epoch.load(std::memory_order_relaxed);
  if (!turn.taken() || epoch == 0) return;
  const std::int64_t now = clock_now();
  if (is_own()) {
    end_step(now);
  } else if (steps.epoch != epoch) {  // once, also where the trace has no room
    steps = StepClock{};
    steps.epoch = epoch;
    steps.series = runtime.recorder->add_step_series();
  }
  if (steps.series != nullptr) begin_step(step, now);
}

void note_backward_begins() noexcept {
  const Turn turn(in_use);
  if (!turn.taken() || !is_own()) return;
  const std::int64_t now = clock_now();
  if (steps.backward_end == 0) {
    steps.now.forward_ns = length(steps.begin, now);
  } else {
    close_between(now);
  }
  steps.backward_begin = now;
  store_current();
}

void note_backward_ends() noexcept {
  const Turn turn(in_use);
  if (!turn.taken() || !is_own() || steps.backward_begin == 0) return;
  steps.backward_end = clock_now();
  steps.now.backward_ns += length(steps.backward_begin, steps.backward_end);
  steps.backward_begin = 0;
  store_current();
}

void note_optimizer_begins() noexcept {
  const Turn turn(in_use);
  if (!turn.taken() || !is_own()) return;
  steps.optimizer_begin = clock_now();
  optimizer_end.store(steps.optimizer_begin, std::memory_order_relaxed);
  close_between(steps.optimizer_begin);
  store_current();
}

void note_optimizer_runs() noexcept {
  optimizer_end.store(clock_now(), std::memory_order_relaxed);
}

void note_data_waited(std::int64_t begin) noexcept {
  const Turn turn(in_use);
  if (!turn.taken() || !is_own() || steps.thread != &thread_state() || steps.backward_begin != 0) return;
  // A wait that an iteration begins in is one of it from there on.
  const std::int64_t last = std::max(steps.begin, steps.backward_end);
  const std::uint64_t waited = length(std::max(begin, last), clock_now());
  (steps.backward_end == 0 ? steps.waited.forward_ns : steps.waited_after_backward) += waited;
  begin_waits();
  store_current_wait();
}

}  // namespace devsan::hooks
