// Where a process kept its tensors, by name and over time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/reader.h"

namespace devsan::report {

// A tensor was on a device from a step on.
struct Stay {
  std::uint32_t step = 0;
  std::string device;
  std::uint8_t flags = 0;  // trace::PlacementFlags
  trace::LineageId lineage = trace::LineageId::none;
  std::int64_t time_ns = 0;
  // Seen within the first step, which nothing tells from what comes before the training.
  bool in_set_up = false;

  bool has(trace::PlacementFlags flag) const { return (flags & flag) != 0; }
  // "cpu pinned"
  std::string text() const;
};

// Where something else decides, or nothing is to be seen, nothing is expected.
bool is_undecided(const Stay& stay);

// How its tensor came to be there; nothing where its history is not known.
std::optional<trace::How> how_it_came(const trace::TraceFile& trace, const Stay& stay);

struct KeptTensor {
  std::string owner;  // "layers.0"; of an optimizer's state the whole name of its parameter
  std::string leaf;   // "weight", "exp_avg"
  std::string type;   // the class of what keeps it
  trace::PlaceKind kind = trace::PlaceKind::none;
  std::vector<Stay> stays;  // oldest first, at least one

  // "layers.0.weight"; "exp_avg of layers.0.weight"
  std::string name() const;
  // What patterns are held against: that of the parameter, where it is state.
  std::string path() const;
  // Where it was when a step was worked on; null before it was first seen.
  const Stay* at(std::uint32_t step) const;
};

// Those that were seen while the process trained. Of a process that never came to the end of a backward, those at its
// end: what happens to a model behind its training says nothing about it.
std::vector<KeptTensor> kept_tensors_of(const trace::TraceFile& trace);

// The same with the stays that were seen within steps: of those that the training went on after, or that the process
// died in.
std::vector<KeptTensor> moving_tensors_of(const trace::TraceFile& trace);

// The modules that were seen, each with its name as `owner` and its class; they have no stays.
std::vector<KeptTensor> modules_of(const trace::TraceFile& trace);

std::string_view name_of(trace::PlaceKind kind);

}  // namespace devsan::report
