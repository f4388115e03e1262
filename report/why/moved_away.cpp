// Somebody put the value on its device: `.cpu()`, `.to("cuda:1")`, or `.to()` of the module that it was computed with.
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> moved_away(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const LineageStep* move = newest_move_of(pair->odd);
  if (move == nullptr || !is_changeable(move->at, finding)) return std::nullopt;
  const bool itself = move == &pair->odd.lineage.front();
  RootCause cause = cause_at(move->at, pair->odd,
                             std::string("This line puts ") + (itself ? "it" : "the value that it is computed from") +
                                 " on " + spoken_device(pair->odd.device) + "; what it meets is on " +
                                 spoken_device(pair->wanted.device) + ".");
  Fix fix{move->at.file, move->at.line, "Put it on " + spoken_device(pair->wanted.device) + " in this line"};
  if (made_in_failing_call(*move, finding)) {
    fix.text += ", or leave it where it was.";
  } else {
    fix.text += ", or move it back where it is used, in " + short_place(*finding.where) + ": `" +
                move_call(pair->odd, pair->wanted) + "`.";
  }
  return Explanation{std::move(cause), std::move(fix)};
}

}  // namespace devsan::report::why
