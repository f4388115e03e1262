// `torch.load` puts each tensor on the device it was saved from, or where `map_location` says.
#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// `torch.load(path, map_location="cpu")` is how to read what others have saved: each who takes a part of it copies that
// to where it belongs. One that keeps its part as it came, in another function or as a weight, is the mistake.
const Frame* kept_as_loaded(const Operand& odd, const LineageStep& load, const Finding& finding) {
  const bool to_host =
      load.at.source.find("\"cpu\"") != std::string::npos || load.at.source.find("'cpu'") != std::string::npos;
  if (!odd.on_cpu() || !to_host) return nullptr;
  if (is_weight(odd)) {
    const Evidence* put = place_of(odd, trace::EvidenceKind::weight_put_at, finding);
    return put != nullptr && !put->at.function.ends_with("__init__") ? &put->at : nullptr;
  }
  if (evidence_of(odd, trace::EvidenceKind::held_by_object) == nullptr) return nullptr;
  const auto is_keeper = [&](const Frame& place) {
    const auto assigned = split_assignment(place.source);
    return is_changeable(place, finding) && !same_function(place, load.at) && !is_constructor(place) && assigned &&
           assigned->target.starts_with("self.");
  };
  if (const LineageStep& newest = odd.lineage.front(); is_keeper(newest.at)) return &newest.at;
  const Evidence* stored = place_of(odd, trace::EvidenceKind::attribute_set_at, finding);
  return stored != nullptr && is_keeper(stored->at) ? &stored->at : nullptr;
}

Explanation kept(const Frame& place, const LineageStep& load, const Pair& pair) {
  return {
      cause_at(place, pair.odd,
               "This line keeps " + mention(pair.odd) + " as it was loaded, on the CPU, as `map_location` says in " +
                   short_place(load.at) + ". What it meets is on " + pair.wanted.device + "."),
      Fix{place.file, place.line,
          "Move what is kept here to where it is used, `.to('" + pair.wanted.device +
              "')`, or copy it into what was there with `copy_()`."}};
}

// A number from an accelerator is odd beside a CPU tensor that takes it in; not where that is on the CPU because it was
// read so.
std::optional<Pair> loaded_among(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.is_scalar() || !on_accelerator(pair->odd) || !pair->wanted.on_cpu()) return pair;
  return Pair{pair->wanted, pair->odd};
}

}  // namespace

std::optional<Explanation> loaded_elsewhere(const Finding& finding) {
  const auto pair = loaded_among(finding);
  if (!pair) return std::nullopt;
  const LineageStep* arrival = arrival_of(pair->odd);
  if (arrival == nullptr || !is_load(*arrival) || !is_changeable(arrival->at, finding)) return std::nullopt;
  if (const Frame* place = kept_as_loaded(pair->odd, *arrival, finding)) return kept(*place, *arrival, *pair);
  const bool mapped = arrival->at.source.find("map_location") != std::string::npos;
  RootCause cause = cause_at(arrival->at, pair->odd,
                             mention_first(pair->odd) + " is loaded here, to " + spoken_device(pair->odd.device) +
                                 (mapped ? ", as `map_location` says." : ", the device it was saved from."));
  const std::string edit =
      mapped ? "" : with_argument(call_at(arrival->at), "map_location='" + pair->wanted.device + "'");
  std::string text = edit.empty() ? "Load it to " + pair->wanted.device + " with `map_location`"
                                  : "Load it to where it is needed: `" + edit + "`";
  text += ", or move what you take from it with `.to('" + pair->wanted.device + "')`.";
  return Explanation{std::move(cause), Fix{arrival->at.file, arrival->at.line, std::move(text)}};
}

}  // namespace devsan::report::why
