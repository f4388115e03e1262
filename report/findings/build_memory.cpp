#include "report/findings/build_memory.h"

#include <algorithm>

namespace devsan::report {
namespace {

MemoryPoint point_of(const trace::MemorySample& sample) {
  return {sample.step, sample.used, sample.held, sample.time_ns};
}

}  // namespace

void add_memory(const trace::TraceFile& trace, Process& process) {
  for (const trace::MemorySeries& series : trace.memory_series()) {
    MemoryCurve curve;
    curve.clock = series.clock;
    if (series.kind == trace::SeriesKind::device) curve.device = trace.device_name(series.device);
    for (const trace::MemorySample& sample : series.samples) curve.points.push_back(point_of(sample));
    if (curve.points.empty()) continue;
    const auto highest = std::ranges::max_element(curve.points, {}, &MemoryPoint::used);
    curve.peak = series.peak ? point_of(*series.peak) : *highest;
    process.memory.push_back(std::move(curve));
  }
  // The host, which has no name, first.
  std::ranges::stable_sort(process.memory, {}, &MemoryCurve::device);
}

}  // namespace devsan::report
