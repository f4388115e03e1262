#include "report/findings/build_steps.h"

#include <algorithm>

namespace devsan::report {
namespace {

// What a trace says beyond that, it does not know.
constexpr std::uint64_t kLongest = 30ull * 24 * 3600 * 1'000'000'000;

StepTimes::Step as_step(const trace::StepTime& told) {
  const auto length = [](std::uint64_t ns) { return ns <= kLongest ? ns : 0; };
  return {told.step,
          told.begin_ns,
          length(told.forward_ns),
          length(told.backward_ns),
          length(told.between_ns),
          length(told.optimizer_ns),
          length(told.rest_ns)};
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
  for (const trace::StepTime& one : told) {
    if (one.begin_ns > 0) times.steps.push_back(as_step(one));
  }
}

}  // namespace devsan::report
