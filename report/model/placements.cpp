#include "report/model/placements.h"

#include <algorithm>

#include "report/model/operands.h"
#include "trace/process_end.h"

namespace devsan::report {
namespace {

bool is_sweep(const trace::Placements& look) {
  return look.fixed.when == trace::LookedAt::backward_end;
}

bool is_within(const trace::Placements& look) {
  return look.fixed.when == trace::LookedAt::in_step;
}

Stay stay_of(const trace::TraceFile& trace, const trace::Placements& look, const trace::PlacementRecord& record) {
  const std::string device(trace.device_name(record.device));
  return {look.fixed.step, device, record.flags, record.lineage, look.fixed.time_ns};
}

// By an exception that nobody caught, or by a signal.
bool has_died(const trace::TraceFile& trace) {
  const bool open = trace.header().close_mark == trace::CloseMark::open;
  return !trace.failures().empty() || trace.header().close_mark == trace::CloseMark::halted ||
         (open && trace::has_ended(trace.header()).value_or(false));
}

std::vector<KeptTensor> tracks_of(const trace::TraceFile& trace, bool within_steps) {
  const std::vector<trace::Placements>& looks = trace.placements();
  const bool has_trained = std::ranges::any_of(looks, is_sweep);
  const auto last_sweep = std::find_if(looks.rbegin(), looks.rend(), is_sweep).base();
  const bool died = has_died(trace);
  bool in_set_up = true;
  std::map<std::uint32_t, KeptTensor> tracks;
  for (auto look = looks.begin(); look != looks.end(); ++look) {
    in_set_up = in_set_up && !is_sweep(*look);
    const bool counts =
        is_within(*look) ? within_steps && (look < last_sweep || died) : !has_trained || is_sweep(*look);
    for (const trace::PlacementRecord& record : look->records) {
      if (record.kind == trace::PlaceKind::module) continue;
      KeptTensor& track = tracks[record.number];
      if (track.kind == trace::PlaceKind::none) {
        track.owner = trace.string(record.owner);
        track.leaf = trace.string(record.leaf);
        track.type = trace.string(record.type);
        track.kind = record.kind;
      }
      if (!counts) continue;
      track.stays.push_back(stay_of(trace, *look, record));
      track.stays.back().in_set_up = in_set_up && is_within(*look);
    }
  }
  std::vector<KeptTensor> result;
  for (auto& [number, track] : tracks) {
    if (!track.stays.empty()) result.push_back(std::move(track));
  }
  return result;
}

}  // namespace

std::string Stay::text() const {
  return device + (has(trace::kPlacePinned) ? " pinned" : "");
}

bool is_undecided(const Stay& stay) {
  return stay.has(trace::kPlaceManaged) || stay.has(trace::kPlaceEmpty) || stay.device == "meta";
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
  return tracks_of(trace, false);
}

std::vector<KeptTensor> moving_tensors_of(const trace::TraceFile& trace) {
  return tracks_of(trace, true);
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
