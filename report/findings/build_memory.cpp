#include "report/findings/build_memory.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "report/model/frames.h"

namespace devsan::report {
namespace {

constexpr std::size_t kMostSites = 24;

MemoryPoint point_of(const trace::MemorySample& sample) {
  return {sample.step, sample.used, sample.held, sample.time_ns};
}

// The last census up to the step at which the curve was highest.
std::optional<trace::MemorySample> census_at_peak(const trace::SiteMemory& site, const MemoryCurve& curve) {
  std::optional<trace::MemorySample> found;
  if (site.clock != curve.clock) return found;
  for (const trace::MemorySample& sample : site.samples) {
    if (sample.step <= curve.peak.step) found = sample;
  }
  return found;
}

void add_live_sites(const trace::TraceFile& trace, Process& process) {
  for (const trace::SiteMemory& site : trace.site_memory()) {
    const std::string name(trace.device_name(site.device));
    const std::string device = name == "cpu" ? std::string() : name;
    const auto curve = std::ranges::find(process.memory, device, &MemoryCurve::device);
    if (curve == process.memory.end()) continue;
    const auto census = census_at_peak(site, *curve);
    if (!census || census->used == 0) continue;
    process.live_sites.push_back({device, user_frame_of(trace, site.site).value_or(Frame{}),
                                  std::string(trace.operator_name(site.op)), census->used, census->held});
  }
  std::ranges::stable_sort(process.live_sites, std::ranges::greater{}, &LiveSite::bytes);
  if (process.live_sites.size() > kMostSites) process.live_sites.resize(kMostSites);
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
  add_live_sites(trace, process);
}

}  // namespace devsan::report
