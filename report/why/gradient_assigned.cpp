// `parameter.grad = gradient`, with the gradient on another device: that of the compute weights, for a master copy of
// them that an optimizer keeps on the host.
#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/odd_operand.h"

namespace devsan::report::why {

std::optional<Explanation> gradient_assigned(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || finding.message.find(trace::kGradientRefused) == std::string::npos) return std::nullopt;
  // What autograd itself computed last is nobody's line.
  const LineageStep* newest = pair->odd.lineage.empty() ? nullptr : &pair->odd.lineage.front();
  const bool elsewhere =
      newest != nullptr && !made_in_failing_call(*newest, finding) && is_changeable(newest->at, finding);
  const Frame* made = elsewhere ? &newest->at : nullptr;
  const Frame& place = made != nullptr ? *made : *finding.where;
  std::string why = mention_first(pair->odd) + (made != nullptr ? ", which is computed here, is on " : " is on ") +
                    spoken_device(pair->odd.device) + "; " + mention(pair->wanted) +
                    ", whose gradient it is to be, is on " + spoken_device(pair->wanted.device) + ".";
  std::string text = "Bring it to " + spoken_device(pair->wanted.device);
  text += made != nullptr ? " in this line, or where it is assigned, in " + short_place(*finding.where) + ": `" : ": `";
  return Explanation{cause_at(place, pair->odd, std::move(why)),
                     Fix{place.file, place.line, text + move_call(pair->odd, pair->wanted) + "`."}};
}

}  // namespace devsan::report::why
