// Somebody put the value on its device: `.cpu()`, `.to("cuda:1")`, or `.to()` of the module that it was computed with.
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

namespace {

// An attribute that says where to, and that is stored now and then: each store decides for all that come after it.
const Evidence* changing_target(const Operand& odd, const Finding& finding) {
  const Evidence* decided = device_decided_at(odd, finding);
  if (decided == nullptr || !decided->text.starts_with("self.")) return nullptr;
  return is_constructor(decided->at) ? nullptr : decided;
}

}  // namespace

std::optional<Explanation> moved_away(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const LineageStep* move = newest_move_of(pair->odd);
  if (move == nullptr || !is_changeable(move->at, finding)) return std::nullopt;
  if (const Evidence* target = changing_target(pair->odd, finding)) {
    RootCause cause = cause_at(target->at, pair->odd,
                               short_place(move->at) + " moves it to `" + target->text +
                                   "`, which gets its value here: " + spoken_device(pair->odd.device) +
                                   " by then. What it meets is on " + spoken_device(pair->wanted.device) + ".");
    return Explanation{std::move(cause),
                       Fix{target->at.file, target->at.line,
                           "Keep the device with each value instead of one for all, or move the value to where it is "
                           "used, in " +
                               short_place(move->at) + "."}};
  }
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
