#include "report/findings/build_steps.h"

#include <algorithm>
#include <map>

namespace devsan::report {
namespace {

// What a trace says beyond that, it does not know.
constexpr std::uint64_t kLongest = 30ull * 24 * 3600 * 1'000'000'000;

std::uint64_t length(std::uint64_t ns) {
  return ns <= kLongest ? ns : 0;
}

// `waited` is of the same step; what it says lies in the phases.
StepTimes::Step as_step(const trace::StepTime& told, const trace::DataWait& waited) {
  StepTimes::Step step{told.step,
                       told.begin_ns,
                       length(told.forward_ns),
                       length(told.backward_ns),
                       length(told.between_ns),
                       length(told.optimizer_ns),
                       length(told.rest_ns)};
  const auto take_out = [&](std::uint64_t& phase, std::uint64_t wait) {
    const std::uint64_t part = std::min(phase, length(wait));
    phase -= part;
    step.data_ns += part;
  };
  take_out(step.forward_ns, waited.forward_ns);
  take_out(step.between_ns, waited.between_ns);
  take_out(step.rest_ns, waited.rest_ns);
  return step;
}

}  // namespace

void add_step_times(const trace::TraceFile& trace, Process& process) {
  const trace::StepSeries& series = trace.step_series();
  std::vector<trace::StepTime> told = series.steps;
  if (series.longest) told.push_back(*series.longest);
  if (series.current) told.push_back(*series.current);
  // One that stands there twice has ended the first time.
  std::ranges::stable_sort(told, {}, &trace::StepTime::step);
  const auto doubles = std::ranges::unique(told, {}, &trace::StepTime::step);
  told.erase(doubles.begin(), doubles.end());
  StepTimes& times = process.step_times;
  times.taken = series.ended + (series.current ? 1 : 0);
  times.data_is_told = trace.data_waits().known;
  std::map<std::uint32_t, trace::DataWait> waits;
  // What a step has waited until it was last looked at takes the place of what it had waited before.
  for (const trace::DataWait& wait : trace.data_waits().steps) {
    trace::DataWait& known = waits[wait.step];
    if (wait.step_ns >= known.step_ns) known = wait;
  }
  for (const trace::StepTime& one : told) {
    if (one.begin_ns > 0) times.steps.push_back(as_step(one, waits[one.step]));
  }
}

}  // namespace devsan::report
