// `torch.load` puts each tensor on the device it was saved from, or where `map_location` says.
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

bool is_load(const LineageStep& step) {
  return step.innermost.file.ends_with("/torch/serialization.py") ||
         call_at(step.at).find("torch.load(") != std::string::npos;
}

}  // namespace

std::optional<Explanation> loaded_elsewhere(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const LineageStep* arrival = arrival_of(pair->odd);
  if (arrival == nullptr || !is_load(*arrival) || !is_changeable(arrival->at, finding)) return std::nullopt;
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
