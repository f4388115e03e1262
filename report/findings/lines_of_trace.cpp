#include "report/findings/lines_of_trace.h"

#include <algorithm>
#include <optional>

namespace devsan::report {

std::uint32_t entries_of(const trace::TraceFile& trace, trace::SectionKind kind, std::uint32_t counted) {
  const trace::Section& section = trace.header().sections[static_cast<std::size_t>(kind) - 1];
  return section.entry_size == 0
             ? 0
             : static_cast<std::uint32_t>(std::min<std::uint64_t>(counted, section.size / section.entry_size));
}

LinesOfTrace::LinesOfTrace(const trace::TraceFile& trace, const std::vector<const LineageStep*>& steps) {
  std::set<Place> wanted;
  for (const LineageStep* step : steps) wanted.insert(place_of(step->at));
  // By site, as far as it stands at one of those lines.
  std::map<trace::SiteId, Place> places;
  const std::uint32_t sites = entries_of(trace, trace::SectionKind::sites, trace.header().sites_used);
  for (std::uint32_t index = 1; index < sites; ++index) {
    const auto site = trace.site(trace::SiteId{index});
    if (!site) continue;
    const Place place{trace.string(site->user.file), site->user.line};
    if (!wanted.contains(place)) continue;
    places.emplace(trace::SiteId{index}, place);
    ran_.insert(place);
  }
  const std::uint32_t nodes = entries_of(trace, trace::SectionKind::lineage, trace.header().lineage_used);
  for (std::uint32_t index = 1; index < nodes; ++index) {
    const auto node = trace.lineage(trace::LineageId{index});
    if (!node || node->how == trace::How::called) continue;
    const auto place = places.find(node->site);
    if (place == places.end()) continue;
    devices_[{place->second, std::string(trace.operator_name(node->op))}].emplace(trace.device_name(node->device));
  }
}

std::set<std::string> LinesOfTrace::devices(const Frame& at, const std::string& op) const {
  const auto found = devices_.find({place_of(at), op});
  return found == devices_.end() ? std::set<std::string>() : found->second;
}

}  // namespace devsan::report
