#include "report/findings/build_memory.h"

#include <algorithm>
#include <optional>

#include "report/findings/build_live_memory.h"

namespace devsan::report {
namespace {

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

PeakMemory peak_of(const trace::TraceFile& trace, const trace::PeakMemory& told) {
  PeakMemory peak;
  peak.device = name_of_memory(trace, told.device);
  if (told.peak > 0) peak.peak = told.peak;
  peak.peak_step = told.peak_step;
  peak.in_backward = told.in_backward;
  peak.step = told.step;
  peak.time_ns = told.time_ns;
  peak.moment = told.moment;
  peak.allocated = told.allocated;
  peak.reserved = told.reserved;
  peak.listed = told.listed;
  for (std::size_t kind = 0; kind < told.kinds.size(); ++kind) {
    if (told.kinds[kind].bytes == 0) continue;
    LiveMemory::Row& row = peak.by_kind.emplace_back();
    row.kind = static_cast<trace::LiveKind>(kind);
    row.bytes = told.kinds[kind].bytes;
    row.tensors = told.kinds[kind].count;
  }
  std::ranges::stable_sort(peak.by_kind, std::ranges::greater{}, &LiveMemory::Row::bytes);
  peak.by_place = rows_by_place(trace, told.rows);
  return peak;
}

// Of a process that no backward was looked at in, or whose trace is of an earlier format: lines, and no kinds.
PeakMemory peak_by_censuses(const trace::TraceFile& trace, const MemoryCurve& curve) {
  PeakMemory peak;
  peak.device = curve.device;
  std::vector<trace::LiveMemoryRow> rows;
  for (const trace::SiteMemory& site : trace.site_memory()) {
    if (name_of_memory(trace, site.device) != curve.device) continue;
    const auto census = census_at_peak(site, curve);
    if (!census || census->used == 0) continue;
    peak.listed += census->used;
    peak.step = std::max(peak.step, census->step);
    peak.time_ns = std::max(peak.time_ns, census->time_ns);
    rows.push_back({census->used, static_cast<std::uint32_t>(census->held), site.site, trace::StringId::none, site.op,
                    trace::LiveKind::unknown, 0});
  }
  if (rows.empty()) return peak;
  LiveMemory::Row& all = peak.by_kind.emplace_back();
  all.kind = trace::LiveKind::unknown;
  all.bytes = peak.listed;
  for (const trace::LiveMemoryRow& row : rows) all.tensors += row.count;
  peak.by_place = rows_by_place(trace, rows);
  return peak;
}

void add_peaks(const trace::TraceFile& trace, Process& process) {
  for (const trace::PeakMemory& told : trace.peak_memory()) process.peak_memory.push_back(peak_of(trace, told));
  if (trace.peak_memory().empty()) {
    for (const MemoryCurve& curve : process.memory) {
      PeakMemory peak = peak_by_censuses(trace, curve);
      if (!peak.by_place.empty()) process.peak_memory.push_back(std::move(peak));
    }
  }
  std::ranges::stable_sort(process.peak_memory, {}, &PeakMemory::device);
}

}  // namespace

std::string name_of_memory(const trace::TraceFile& trace, trace::DeviceSlot slot) {
  const std::string_view name = trace.device_name(slot);
  return name == "cpu" ? std::string() : std::string(name);
}

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
  add_peaks(trace, process);
}

}  // namespace devsan::report
