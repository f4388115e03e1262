// `parameter.grad = gradient`, with the gradient on another device: that of the compute weights, for a master copy of
// them that an optimizer keeps on the host.
#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/odd_operand.h"

namespace devsan::report::why {
namespace {

// `weight.grad = reduced.cpu()`: a gradient that is sent to the host on purpose is for a parameter that lives there.
std::optional<Explanation> parameter_elsewhere(const Pair& pair, const Finding& finding) {
  const LineageStep* move = newest_move_of(pair.wanted);
  const bool on_purpose = pair.odd.on_cpu() && finding.where->statement().find(".cpu()") != std::string::npos;
  if (!on_purpose || move == nullptr || moves_module(*move) || !is_changeable(move->at, finding)) return std::nullopt;
  return Explanation{cause_at(move->at, pair.wanted,
                              "This line puts what becomes " + mention(pair.wanted) + " on " +
                                  spoken_device(pair.wanted.device) + ". Its gradient is brought to the CPU in " +
                                  short_place(*finding.where) + ", for a parameter that is kept there."),
                     Fix{move->at.file, move->at.line,
                         "Keep the parameter on the CPU, `.cpu()`; or leave the gradient on " +
                             spoken_device(pair.wanted.device) + " in " + short_place(*finding.where) + "."}};
}

}  // namespace

std::optional<Explanation> gradient_assigned(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || finding.message.find(trace::kGradientRefused) == std::string::npos) return std::nullopt;
  if (auto parameter = parameter_elsewhere(*pair, finding)) return parameter;
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
