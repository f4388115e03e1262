#include "report/findings/build_expectations.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "report/findings/build_placements.h"
#include "report/findings/experts.h"
#include "report/findings/partitions.h"
#include "report/model/operands.h"

namespace devsan::report {
namespace {

std::string_view meaning_of_expectation(std::string_view name) {
#define DEVSAN_EXPECTATION(expectation, meaning) \
  if (name == expectation) return meaning;
#include "rules/expectations.def"
#undef DEVSAN_EXPECTATION
  return {};
}

bool was_moved(const trace::TraceFile& trace, const Stay& stay) {
  const std::vector<LineageStep> steps = lineage_of(trace, stay.lineage);
  return std::ranges::any_of(steps, [](const LineageStep& step) { return step.how == trace::How::moved; });
}

// Where it was before all moves; empty where that is not known.
std::string first_device_of(const trace::TraceFile& trace, const Stay& stay) {
  const std::vector<LineageStep> steps = lineage_of(trace, stay.lineage);
  return steps.empty() ? std::string() : steps.back().device;
}

// Whether a line has put it where it is.
bool was_put_there(const trace::TraceFile& trace, const Stay& stay) {
  return how_it_came(trace, stay).value_or(trace::How::moved) == trace::How::moved;
}

// Whether a tensor of this history was made from one of that history, or is it.
bool comes_from(const trace::TraceFile& trace, trace::LineageId made, trace::LineageId source) {
  for (int steps = 0; made != trace::LineageId::none && steps <= trace::kMaxLineageDepth; ++steps) {
    if (made == source) return true;
    const auto node = trace.lineage(made);
    made = node ? node->parent : trace::LineageId::none;
  }
  return false;
}

// Whether state that was seen beside a parameter is that of what has the parameter's name at the end. Names are given
// again: where another tensor has it since, its state need not have been seen, and what was seen is gone.
bool is_of_same_parameter(const trace::TraceFile& trace, const Stay& state, const KeptTensor& parameter) {
  const Stay& last = parameter.stays.back();
  if (last.time_ns <= state.time_ns) return true;
  const auto then = std::ranges::find_if(parameter.stays.rbegin(), parameter.stays.rend(),
                                         [&](const Stay& stay) { return stay.time_ns <= state.time_ns; });
  return then != parameter.stays.rend() && comes_from(trace, last.lineage, then->lineage);
}

class Expectations {
 public:
  Expectations(const trace::TraceFile& trace, const std::vector<KeptTensor>& tracks) : trace_(trace), tracks_(tracks) {
    for (const KeptTensor& track : tracks) {
      if (track.kind != trace::PlaceKind::state) by_path_.emplace(track.path(), &track);
    }
    partitions_ = misplaced_partitions(trace_, tracks_);
  }

  // Of a module's own parameters some were moved, and others are where those came from: they were left behind.
  std::vector<Breach> left_behind() const {
    std::map<std::string, std::vector<const KeptTensor*>> modules;
    for (const KeptTensor& track : tracks_) {
      const bool holder_of_many = track.type == "ParameterList" || track.type == "ParameterDict";
      if (track.kind == trace::PlaceKind::parameter && !holder_of_many && !is_undecided(track.stays.back())) {
        modules[track.owner].push_back(&track);
      }
    }
    std::vector<Breach> found;
    for (const auto& [owner, parameters] : modules) {
      const auto moved = std::ranges::find_if(
          parameters, [&](const KeptTensor* track) { return was_moved(trace_, track->stays.back()); });
      if (moved == parameters.end()) continue;
      const Stay& there = (*moved)->stays.back();
      for (const KeptTensor* track : parameters) {
        const Stay& stay = track->stays.back();
        const bool stayed = stay.device != there.device && !was_moved(trace_, stay) &&
                            stay.device == first_device_of(trace_, there) && stay.lineage != trace::LineageId::none;
        if (stayed) found.push_back({track, &stay, there.device});
      }
    }
    return found;
  }

  // State of one kind that is beside some parameters, and not beside others, though no line has put it elsewhere: the
  // parameter has moved, and left it behind.
  std::vector<Breach> astray() const {
    std::map<std::string, std::size_t> beside;
    std::map<std::string, std::vector<Breach>> apart;
    for (const KeptTensor& track : tracks_) {
      const Stay& stay = track.stays.back();
      const auto about = by_path_.find(track.owner);
      if (track.kind != trace::PlaceKind::state || stay.has(trace::kPlaceScalar) || about == by_path_.end()) continue;
      const Stay& parameter = about->second->stays.back();
      if (is_undecided(parameter) || stay.has(trace::kPlaceEmpty) || is_misplaced(*about->second)) continue;
      if (stay.device == parameter.device) {
        ++beside[track.leaf];
      } else if (!was_put_there(trace_, stay) && is_of_same_parameter(trace_, stay, *about->second)) {
        apart[track.leaf].push_back({&track, &stay, parameter.device});
      }
    }
    std::vector<Breach> found;
    for (const auto& [leaf, breaches] : apart) {
      if (beside[leaf] >= breaches.size()) found.insert(found.end(), breaches.begin(), breaches.end());
    }
    return found;
  }

  // Averages that were copied before the model moved, and that no line has put anywhere since. A line that asks for
  // them to be where they are already, as `AveragedModel(model, device="cpu")` does on the host, has put them there.
  std::vector<Breach> averages() const {
    std::vector<Breach> found;
    for (const KeptTensor& counter : tracks_) {
      if (counter.type != "AveragedModel" || counter.leaf != "n_averaged") continue;
      const std::string root = counter.owner + ".module.";
      if (was_asked_for(root)) continue;
      for (const KeptTensor& track : tracks_) {
        const bool is_average = track.kind == trace::PlaceKind::parameter && track.path().starts_with(root);
        if (!is_average || is_undecided(track.stays.back()) || was_moved(trace_, track.stays.back())) continue;
        const KeptTensor* model = weights_of_model(track.path().substr(root.size()), root);
        if (model == nullptr || is_undecided(model->stays.back())) continue;
        const Stay& there = model->stays.back();
        const bool moved_away = there.device != track.stays.back().device && was_moved(trace_, there);
        if (moved_away) found.push_back({&track, &track.stays.back(), there.device});
      }
    }
    return found;
  }

  std::vector<Breach> partitions() const { return partitions_; }
  std::vector<Breach> experts() const { return misplaced_experts(trace_, tracks_); }

 private:
  // State is not to follow a partition to where that should not be.
  bool is_misplaced(const KeptTensor& parameter) const {
    return std::ranges::any_of(partitions_, [&](const Breach& breach) { return breach.track == &parameter; });
  }

  // Of any of an average's tensors, for they are moved together, and not of each it is known.
  bool was_asked_for(const std::string& root) const {
    return std::ranges::any_of(tracks_, [&](const KeptTensor& track) {
      return track.path().starts_with(root) && track.stays.back().has(trace::kPlaceAsked);
    });
  }

  // The one parameter outside of the average whose name ends so.
  const KeptTensor* weights_of_model(const std::string& name, const std::string& average) const {
    const KeptTensor* found = nullptr;
    for (const KeptTensor& track : tracks_) {
      const std::string path = track.path();
      const bool same = track.kind == trace::PlaceKind::parameter && !path.starts_with(average) &&
                        (path == name || path.ends_with("." + name));
      if (!same) continue;
      if (found != nullptr) return nullptr;
      found = &track;
    }
    return found;
  }

  const trace::TraceFile& trace_;
  const std::vector<KeptTensor>& tracks_;
  std::map<std::string, const KeptTensor*> by_path_;
  std::vector<Breach> partitions_;
};

}  // namespace

std::vector<Finding> judge_expectations(const trace::TraceFile& trace, const std::vector<KeptTensor>& tracks,
                                        const std::set<std::string>& off) {
  using Judge = std::vector<Breach> (Expectations::*)() const;
  static constexpr std::pair<std::string_view, Judge> kAll[] = {
      {"module-on-one-device", &Expectations::left_behind},  {"state-beside-parameter", &Expectations::astray},
      {"average-beside-model", &Expectations::averages},     {"partition-where-configured", &Expectations::partitions},
      {"expert-where-its-group-is", &Expectations::experts},
  };
  const Expectations expectations(trace, tracks);
  std::vector<Finding> findings;
  for (const auto& [name, judge] : kAll) {
    if (off.contains(std::string(name)) || off.contains("all")) continue;
    Expectation expectation;
    expectation.rule = name;
    expectation.sentence = meaning_of_expectation(name);
    std::vector<Finding> more = findings_of(trace, expectation, (expectations.*judge)());
    findings.insert(findings.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  return findings;
}

}  // namespace devsan::report
