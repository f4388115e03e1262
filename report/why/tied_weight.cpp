// Two modules share one tensor, and were moved to different devices: the last one took it along.
#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// Whether the weight was where the other operand is before this move.
bool was_on(const Operand& operand, const LineageStep& move, const std::string& device) {
  for (const LineageStep& step : operand.lineage) {
    if (&step > &move) return step.device == device;
  }
  return false;
}

}  // namespace

std::optional<Explanation> tied_weight(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  for (const Operand* weight : {&pair->odd, &pair->wanted}) {
    const Operand& other = weight == &pair->odd ? pair->wanted : pair->odd;
    const Evidence* tied = evidence_of(*weight, trace::EvidenceKind::tied_to);
    const LineageStep* move = newest_move_of(*weight);
    if (tied == nullptr || move == nullptr || !is_changeable(move->at, finding)) continue;
    if (!was_on(*weight, *move, other.device)) continue;
    // A model that was moved as a whole took its tied weights along; what meets them on the CPU was left there.
    if (other.on_cpu() && evidence_of(*weight, trace::EvidenceKind::weights_elsewhere) == nullptr) continue;
    std::string why = "This line moves `" + tied->text + "` to " + spoken_device(weight->device) +
                      ". That is the same tensor as " + mention(*weight) + ", which was on " +
                      spoken_device(other.device) + ", and goes with it.";
    return Explanation{cause_at(move->at, *weight, std::move(why)),
                       Fix{move->at.file, move->at.line,
                           "Keep modules that share a weight on one device, here " + spoken_device(other.device) +
                               ", and bring to them what they are called with; or give each a weight of its own."}};
  }
  return std::nullopt;
}

}  // namespace devsan::report::why
