#include "report/findings/build_growth.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>

#include "report/findings/build_memory.h"
#include "report/findings/growth.h"
#include "report/model/frames.h"
#include "report/model/merge.h"
#include "report/wording/growth_text.h"

namespace devsan::report {
namespace {

constexpr double kSmallShare = 0.01;  // of what is in use at last: a note
// A loop without backward has reason to keep something of each round, and to end.
constexpr double kSmallShareOfRounds = 0.2;
// A process's own memory also grows by what the C library and Python keep for later, in steps and with an end.
constexpr std::uint32_t kLeastStepsOfCurve = 50;
constexpr std::size_t kLeastPointsOfCurve = 16;
constexpr double kLeastShareOfCurve = 0.03;
constexpr double kAccountedFor = 0.5;  // of a curve's slope, by tensors
// What the process itself may need for a tensor that is kept: its objects in C++ and Python, the nodes of its graph,
// the block of the allocator. Measured are 1.5 KiB; a graph has nodes without tensors, too.
constexpr double kBytesOfRecords = 8192;
constexpr double kBytesOfNode = 4096;  // of a graph; measured are 1.2 KiB, of one that is mostly functions in Python

struct GrowingSite {
  const trace::SiteMemory* site = nullptr;
  std::string device;  // empty: the host
  std::string holder;
  Slope slope;
  Growth::Part part;
  std::int64_t time_ns = 0;
  std::uint32_t last_step = 0;
};

std::optional<GrowingSite> growing(const trace::TraceFile& trace, const trace::SiteMemory& site) {
  std::vector<GrowthPoint> counts;
  std::vector<GrowthPoint> bytes;
  for (const trace::MemorySample& sample : site.samples) {
    counts.push_back({sample.step, static_cast<double>(sample.held)});
    bytes.push_back({sample.step, static_cast<double>(sample.used)});
  }
  const auto by_count = growth_of(counts);
  const auto slope = by_count ? by_count : growth_of(bytes);
  if (!slope) return std::nullopt;
  GrowingSite result;
  result.site = &site;
  result.device = name_of_memory(trace, site.device);
  result.holder = trace.string(site.holder);
  result.slope = *slope;
  result.part.at = user_frame_of(trace, site.site).value_or(Frame{});
  result.part.op = trace.operator_name(site.op);
  const auto later = [&](const GrowthPoint& point) { return point.step >= slope->since; };
  const auto begin = std::ranges::find_if(bytes, later) - bytes.begin();
  result.part.bytes_per_step = std::max(0.0, median_slope(std::span(bytes).subspan(static_cast<std::size_t>(begin))));
  result.part.tensors_per_step = by_count ? by_count->per_step : 0;
  result.part.bytes = site.samples.back().used;
  result.time_ns = site.samples.back().time_ns;
  result.last_step = site.samples.back().step;
  return result;
}

const MemoryCurve* curve_of(const Process& process, const std::string& device) {
  const auto found = std::ranges::find(process.memory, device, &MemoryCurve::device);
  return found == process.memory.end() ? nullptr : &*found;
}

// How many steps more the device, or the host, will do: what the curve leaves of it, by what each step takes.
std::optional<std::uint64_t> steps_left(const Process& process, const std::string& device, double bytes_per_step) {
  const auto capacity = process.info.find("memory." + (device.empty() ? std::string("host") : device));
  const MemoryCurve* curve = curve_of(process, device);
  if (capacity == process.info.end() || curve == nullptr || bytes_per_step < 1) return std::nullopt;
  const double all = std::strtod(capacity->second.c_str(), nullptr);
  const double left = all - static_cast<double>(curve->points.back().used);
  if (left < 0) return std::nullopt;
  return static_cast<std::uint64_t>(left / bytes_per_step);
}

Finding begin_finding(const Process& process) {
  Finding finding;
  finding.kind = Kind::memory_growth;
  finding.severity = default_severity(finding.kind);
  set_process(finding, process.pid, process.rank);
  finding.thread = process.pid;
  return finding;
}

bool with_graph(const GrowingSite& site) {
  return (site.site->holder_flags & trace::kHolderGraph) != 0;
}

// The step at which it began, as all findings count them; what other clocks count began in the last one.
std::uint32_t step_in_run(const Process& process, const Growth& growth) {
  return growth.clock == trace::SeriesClock::iterations ? growth.since : process.steps;
}

// Those that a list or dict keeps come first, of these the ones whose graphs keep the others: what has no holder
// follows. Of equal ones the order in the program decides, so that ranks name the same.
bool comes_first(const GrowingSite& a, const GrowingSite& b) {
  if (a.holder.empty() != b.holder.empty()) return b.holder.empty();
  if (with_graph(a) != with_graph(b)) return with_graph(a);
  if (a.part.bytes_per_step != b.part.bytes_per_step) return a.part.bytes_per_step > b.part.bytes_per_step;
  return std::tie(a.part.at.file, a.part.at.line, a.part.op) < std::tie(b.part.at.file, b.part.at.line, b.part.op);
}

// `records`: what the host gains with every step by these tensors, besides themselves.
Finding finding_of(const trace::TraceFile& trace, const Process& process, std::vector<GrowingSite> sites,
                   double records) {
  std::ranges::stable_sort(sites, comes_first);
  const GrowingSite& first = sites.front();
  Finding finding = begin_finding(process);
  Growth growth;
  growth.device = std::ranges::max(sites, {}, [](const GrowingSite& s) { return s.part.bytes_per_step; }).device;
  growth.holder = first.holder;
  growth.graph = with_graph(first) || (first.holder.empty() && sites.size() > 2);
  if ((first.site->holder_flags & trace::kHolderByGraph) != 0)
    growth.sum_at = user_frame_of(trace, first.site->holder_site);
  growth.bounded = (first.site->holder_flags & trace::kHolderBounded) != 0;
  growth.clock = first.site->clock;
  growth.since = first.slope.since;
  growth.records_per_step = records;
  for (const GrowingSite& site : sites) {
    growth.bytes_per_step += site.part.bytes_per_step;
    growth.bytes += site.part.bytes;
    growth.parts.push_back(site.part);
  }
  finding.op = first.part.op;
  if (!first.part.at.file.empty()) {
    finding.where = first.part.at;
    finding.stack = {first.part.at};
  }
  finding.step = step_in_run(process, growth);
  finding.time_ns = first.time_ns;
  // What is on a simulated device is memory of the host, too.
  if (records > growth.bytes_per_step && process.info.contains("simulated")) growth.device.clear();
  growth.steps_left = steps_left(process, growth.device, growth.all_per_step());
  const MemoryCurve* curve = curve_of(process, growth.device);
  const double total = curve != nullptr ? static_cast<double>(curve->points.back().used) : 0;
  const double gained = growth.bytes_per_step * (first.last_step - std::min(growth.since, first.last_step));
  const bool by_rounds = growth.clock == trace::SeriesClock::rounds;
  const bool small = gained < total * (by_rounds ? kSmallShareOfRounds : kSmallShare);
  if ((small && (by_rounds || records == 0)) || growth.bounded) finding.severity = Severity::note;
  finding.growth = std::move(growth);
  advise(finding);
  finding.id = identity_of(finding);
  return finding;
}

// One group for each container, and one for what no object keeps. What is kept by graphs alone belongs to the container
// whose tensors have them.
std::vector<std::vector<GrowingSite>> groups_of(std::vector<GrowingSite> sites) {
  const GrowingSite* head = nullptr;
  for (const GrowingSite& site : sites) {
    if (with_graph(site) && (head == nullptr || site.part.tensors_per_step > head->part.tensors_per_step)) head = &site;
  }
  const std::string of_graphs = head != nullptr ? container_of(head->holder) : "";
  std::map<std::string, std::vector<GrowingSite>> groups;
  for (GrowingSite& site : sites) {
    const std::string container = site.holder.empty() ? of_graphs : container_of(site.holder);
    groups[container].push_back(std::move(site));
  }
  std::vector<std::vector<GrowingSite>> result;
  for (auto& [container, group] : groups) result.push_back(std::move(group));
  return result;
}

// Whether no line's tensors were counted often enough for a slope.
bool looked_seldom(const trace::TraceFile& trace) {
  const auto& sites = trace.site_memory();
  const auto few = [](const trace::SiteMemory& site) { return site.samples.size() < kLeastPointsOfCurve; };
  return !sites.empty() && std::ranges::all_of(sites, few);
}

std::optional<Slope> slope_of(const MemoryCurve& curve) {
  std::vector<GrowthPoint> points;
  for (const MemoryPoint& point : curve.points) points.push_back({point.step, static_cast<double>(point.used)});
  if (points.size() < kLeastPointsOfCurve || points.back().step - points.front().step < kLeastStepsOfCurve)
    return std::nullopt;
  auto slope = growth_of(points);
  return slope && slope->gained >= points.back().value * kLeastShareOfCurve ? slope : std::nullopt;
}

// A curve that grows more than its tensors do; `seldom` as of Growth.
Finding finding_of(const Process& process, const MemoryCurve& curve, const Slope& slope, bool seldom) {
  Finding finding = begin_finding(process);
  Growth growth;
  growth.device = curve.device;
  growth.clock = curve.clock;
  growth.since = slope.since;
  growth.bytes_per_step = slope.per_step;
  growth.bytes = curve.points.back().used;
  growth.steps_left = steps_left(process, growth.device, growth.bytes_per_step);
  growth.seldom = seldom;
  finding.step = step_in_run(process, growth);
  finding.time_ns = curve.points.back().time_ns;
  finding.growth = std::move(growth);
  return finding;
}

// What the process may need with every step for the tensors that have grown for as long as the host's curve, and for
// their graphs. Tensors that are kept together have one graph.
double records_of(const std::vector<GrowingSite>& sites, const MemoryCurve& host, const Slope& slope) {
  const std::uint32_t late = slope.since + (host.points.back().step - slope.since) / 4;
  double tensors = 0;
  double nodes = 0;
  for (const GrowingSite& site : sites) {
    if (site.slope.since > late) continue;
    tensors += site.part.tensors_per_step;
    nodes = std::max(nodes, site.part.tensors_per_step * (site.site->holder_flags >> trace::kHolderNodesShift));
  }
  return tensors * kBytesOfRecords + nodes * kBytesOfNode;
}

// Names the tensor whose graph becomes longer and longer, where there is one: nodes are what the process grows by.
void name_graph(const trace::TraceFile& trace, Finding& finding) {
  const auto longer = [](const trace::SiteMemory& site) { return (site.holder_flags & trace::kHolderLonger) != 0; };
  const auto found = std::ranges::find_if(trace.site_memory(), longer);
  const auto at = found == trace.site_memory().end() ? std::nullopt : user_frame_of(trace, found->site);
  if (!at) return;
  finding.op = trace.operator_name(found->op);
  finding.where = *at;
  finding.stack = {*at};
  finding.growth->holder = trace.string(found->holder);
  finding.growth->graph = true;
  finding.growth->seldom = false;
  finding.growth->sum_at = at;
  advise(finding);
}

// What grows, with what the tensors that grow say of it.
struct Curves {
  std::vector<Finding> findings;  // of those that the tensors do not account for
  double records = 0;             // that the host has of the tensors, with every step
};

Curves judge_curves(const trace::TraceFile& trace, const Process& process, const std::vector<GrowingSite>& sites) {
  std::map<std::string, double> by_tensors;
  // What is on a simulated device is memory of the process, too.
  const bool simulated = process.info.contains("simulated");
  for (const GrowingSite& site : sites) {
    by_tensors[site.device] += site.part.bytes_per_step;
    if (simulated && !site.device.empty()) by_tensors[""] += site.part.bytes_per_step;
  }
  const bool seldom = looked_seldom(trace);
  Curves curves;
  for (const MemoryCurve& curve : process.memory) {
    const auto slope = slope_of(curve);
    const double tensors = by_tensors[curve.device];
    if (!slope || tensors > slope->per_step * kAccountedFor) continue;
    const double rest = slope->per_step - tensors;
    if (curve.device.empty() && rest <= records_of(sites, curve, *slope)) {
      curves.records = rest;
    } else {
      Finding finding = finding_of(process, curve, *slope, seldom);
      if (curve.device.empty()) name_graph(trace, finding);
      finding.id = identity_of(finding);
      curves.findings.push_back(std::move(finding));
    }
  }
  return curves;
}

double tensors_of(const std::vector<GrowingSite>& group) {
  double tensors = 0;
  for (const GrowingSite& site : group) tensors += site.part.tensors_per_step;
  return tensors;
}

}  // namespace

std::vector<Finding> build_growth(const trace::TraceFile& trace, const Process& process) {
  std::vector<GrowingSite> sites;
  for (const trace::SiteMemory& site : trace.site_memory()) {
    if (auto found = growing(trace, site)) sites.push_back(std::move(*found));
  }
  auto [findings, records] = judge_curves(trace, process, sites);
  auto groups = groups_of(std::move(sites));
  const auto most = std::ranges::max_element(groups, {}, tensors_of);
  for (auto group = groups.begin(); group != groups.end(); ++group) {
    findings.push_back(finding_of(trace, process, std::move(*group), group == most ? records : 0));
  }
  return findings;
}

}  // namespace devsan::report
