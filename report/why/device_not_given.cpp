// A helper makes its tensors on the device that it is told, and is told none by a function that knows one: `mask =
// causal_mask(n)`, beside `positions = torch.arange(n, device=self.device)`.
#include <algorithm>
#include <string>

#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> device_not_given(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || is_weight(pair->odd)) return std::nullopt;
  const Evidence* call = place_of(pair->odd, trace::EvidenceKind::device_not_given_at, finding);
  const LineageStep* arrival = arrival_of(pair->odd);
  if (call == nullptr || arrival == nullptr || names_device_itself(arrival->at)) return std::nullopt;
  const std::string argument = call->text.substr(0, call->text.find('='));
  // The line that made it, or that left it where it was, has to ask for that argument.
  const Evidence* stay = place_of(pair->odd, trace::EvidenceKind::stayed_at, finding);
  const auto asks = [&](const Frame& place) { return place.statement().find(argument) != std::string::npos; };
  const bool asked = std::ranges::any_of(pair->odd.lineage, [&](const LineageStep& step) { return asks(step.at); });
  if (!asked && (stay == nullptr || !asks(stay->at))) return std::nullopt;
  const std::string here = spoken_device(pair->odd.device);
  const std::string led_to = asked
                                 ? mention_first(pair->odd) + " is made in " + short_place(arrival->at) + ", on " + here
                                 : short_place(stay->at) + " leaves " + mention(pair->odd) + " on " + here;
  const std::string edit = with_argument(call_at(call->at), call->text);
  return Explanation{
      cause_at(call->at, pair->odd,
               led_to + ": this call, which leads there, leaves `" + argument +
                   "` at its default. What it meets is on " + spoken_device(pair->wanted.device) + "."),
      Fix{call->at.file, call->at.line,
          edit.empty() ? "Hand the device on: `" + call->text + "`." : "Hand the device on: `" + edit + "`."}};
}

}  // namespace devsan::report::why
