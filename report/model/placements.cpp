#include "report/model/placements.h"

#include <algorithm>

#include "report/model/operands.h"

namespace devsan::report {
namespace {

Stay stay_of(const trace::TraceFile& trace, const trace::PlacementsPayload& look,
             const trace::PlacementRecord& record) {
  return {look.step, std::string(trace.device_name(record.device)), record.flags, record.lineage, look.time_ns};
}

}  // namespace

std::string Stay::text() const {
  return device + (has(trace::kPlacePinned) ? " pinned" : "");
}

std::optional<trace::How> how_it_came(const trace::TraceFile& trace, const Stay& stay) {
  const std::vector<LineageStep> steps = lineage_of(trace, stay.lineage);
  return steps.empty() ? std::nullopt : std::optional(steps.front().how);
}

std::string KeptTensor::path() const {
  if (kind == trace::PlaceKind::state) return owner;
  return owner + (owner.empty() || leaf.starts_with('[') ? "" : ".") + leaf;
}

std::string KeptTensor::name() const {
  return kind == trace::PlaceKind::state ? leaf + " of " + owner : path();
}

const Stay* KeptTensor::at(std::uint32_t step) const {
  const Stay* found = nullptr;
  for (const Stay& stay : stays) {
    if (stay.step <= step) found = &stay;
  }
  return found;
}

std::vector<KeptTensor> kept_tensors_of(const trace::TraceFile& trace) {
  const auto trained = [](const trace::Placements& look) { return look.fixed.when == trace::LookedAt::backward_end; };
  const bool has_trained = std::ranges::any_of(trace.placements(), trained);
  std::map<std::uint32_t, KeptTensor> tracks;
  for (const trace::Placements& look : trace.placements()) {
    if (has_trained && !trained(look)) continue;
    for (const trace::PlacementRecord& record : look.records) {
      if (record.kind == trace::PlaceKind::module) continue;
      KeptTensor& track = tracks[record.number];
      if (track.stays.empty()) {
        track.owner = trace.string(record.owner);
        track.leaf = trace.string(record.leaf);
        track.type = trace.string(record.type);
        track.kind = record.kind;
      }
      track.stays.push_back(stay_of(trace, look.fixed, record));
    }
  }
  std::vector<KeptTensor> result;
  for (auto& [number, track] : tracks) result.push_back(std::move(track));
  return result;
}

std::vector<KeptTensor> modules_of(const trace::TraceFile& trace) {
  std::vector<KeptTensor> modules;
  for (const trace::Placements& look : trace.placements()) {
    for (const trace::PlacementRecord& record : look.records) {
      if (record.kind != trace::PlaceKind::module) continue;
      modules.push_back(
          {std::string(trace.string(record.owner)), {}, std::string(trace.string(record.type)), record.kind, {}});
    }
  }
  return modules;
}

std::string_view name_of(trace::PlaceKind kind) {
  switch (kind) {
    case trace::PlaceKind::none:
      break;
#define DEVSAN_PLACE(enumerator, number, name) \
  case trace::PlaceKind::enumerator:           \
    return name;
#include "trace/place_kinds.def"
#undef DEVSAN_PLACE
  }
  return "unknown";
}

}  // namespace devsan::report
