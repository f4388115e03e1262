// `Module.to()` moves a module in place, under all who have it. An evaluation that takes the averaged model to another
// GPU leaves it there, and the next update finds it gone from beside the weights it follows.
#include "report/frames.h"
#include "report/why/decision.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// A weight as its module's move has left it, and not what was computed with it.
const LineageStep* moved_with_module(const Operand& operand) {
  if (operand.lineage.empty()) return nullptr;
  const LineageStep& newest = operand.lineage.front();
  return newest.how == trace::How::moved && moves_module(newest) ? &newest : nullptr;
}

}  // namespace

std::optional<Explanation> moved_in_place(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !on_accelerator(pair->odd) || !on_accelerator(pair->wanted)) return std::nullopt;
  const bool wanted_left = was_on(pair->wanted, pair->odd.device);
  if (wanted_left == was_on(pair->odd, pair->wanted.device)) return std::nullopt;
  if (moved_with_module(wanted_left ? pair->wanted : pair->odd) == nullptr) return std::nullopt;
  // What an attribute says that was stored before is another mistake: it does not follow any move.
  const bool stored = attribute_between(pair->odd, trace::EvidenceKind::device_from, finding) != nullptr;
  if (stored && moved_with_module(pair->odd) == nullptr) return std::nullopt;
  const Operand& left = wanted_left ? pair->wanted : pair->odd;
  const Operand& other = wanted_left ? pair->odd : pair->wanted;
  // Meant to go back to where it was, by a line that is told of itself.
  const auto decided = decision_of(left, trace::EvidenceKind::device_from, finding);
  if (decided && keeps_type_alone(*decided)) return std::nullopt;
  const LineageStep& move = *moved_with_module(left);
  if (!is_changeable(move.at, finding) || is_running(move.at, finding)) return std::nullopt;
  return Explanation{cause_at(move.at, left,
                              "This line moves the module of " + mention(left) + " from " + other.device + ", where " +
                                  mention(other) + " is, to " + left.device +
                                  ". `Module.to()` moves it in place: whoever else has it finds it there."),
                     Fix{move.at.file, move.at.line,
                         "Move a copy, `copy.deepcopy(…)`, and leave the module where it is; or bring it back to " +
                             other.device + " when this is done."}};
}

}  // namespace devsan::report::why
