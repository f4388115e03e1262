// A `.to()` that names the device that the value is on already returns it as it is. Where the value is missed elsewhere
// later, that line decided: the device it names was another one then than it is now, or than the model's.
#include <algorithm>
#include <string>

#include "report/frames.h"
#include "report/why/decision.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// torch's own Python and `torch.tensor()` convert what they have just made, which the program did not ask for.
bool asks_to_move(const Evidence& stay, const Operand& odd) {
  const auto same_call = [&](const LineageStep& step) {
    return same_line(step.at, stay.at) && step.at.column == stay.at.column && step.at.end_column == stay.at.end_column;
  };
  const std::string call = call_at(stay.at);
  const std::string& text = call.empty() ? stay.at.statement() : call;
  return std::ranges::none_of(odd.lineage, same_call) && (text.find(".to(") != text.npos || names_device(stay.at));
}

Explanation left_as_told(const Decision& told, const Evidence& stay, const Pair& pair, const Finding& finding) {
  const std::string here = spoken_device(pair.odd.device);
  RootCause cause = cause_at(told.at, pair.odd,
                             short_place(stay.at) + " leaves " + mention(pair.odd) + " on " + here + ", " +
                                 because_of(told) + ". What it meets is on " + spoken_device(pair.wanted.device) + ".");
  return {std::move(cause), Fix{told.at.file, told.at.line,
                                change_of(told, pair, finding) + "; or move it where it is used: `" +
                                    move_call(pair.odd, pair.wanted) + "`."}};
}

// `to_device(batch, self.model.device)`: a helper moves what it is given to the device that its caller says, which asks
// something else for it.
bool tells_helper(const Decision& told, const Evidence& stay) {
  return is_device_argument(told) && !same_function(told.at, stay.at) && is_device_of_value(told.at);
}

// `self.values.index_select(0, rows.to(self.keys.device))`: the failing line brings it over, and asks the wrong one
// where to.
std::optional<Explanation> asked_in_vain(const Evidence& stay, const Pair& pair, const Finding& finding) {
  const std::string call = call_at(stay.at);
  if (call.find(".device)") == call.npos || is_weight(pair.odd)) return std::nullopt;
  if (const Evidence* property = place_of(pair.odd, trace::EvidenceKind::device_property_at, finding)) {
    return Explanation{
        cause_at(property->at, pair.odd,
                 "`" + call + "` leaves " + mention(pair.odd) + " on " + spoken_device(pair.odd.device) +
                     ", as this property says. What it meets is on " + spoken_device(pair.wanted.device) +
                     " when it is used."),
        Fix{property->at.file, property->at.line,
            "Say where the work is done, not where something is kept; or take the device from what it meets, in " +
                short_place(stay.at) + ": `.to(" + device_expression(pair.wanted) + ")`."}};
  }
  return Explanation{
      cause_at(stay.at, pair.odd,
               "`" + call + "` leaves " + mention(pair.odd) + " where it is, on " + spoken_device(pair.odd.device) +
                   ": so is what it asks for the device. What it meets in this line is on " +
                   spoken_device(pair.wanted.device) + "."),
      Fix{stay.at.file, stay.at.line,
          "Take the device from what it meets: `.to(" + device_expression(pair.wanted) + ")`."}};
}

// `self.teacher = load(name)`, which takes an accelerator unless it is told, in an object that is told the CPU: what is
// moved to where the object is meets a model that is not.
std::optional<Explanation> other_by_default(const Decision& told, const Pair& pair, const Finding& finding) {
  const auto other = decision_of(pair.wanted, trace::EvidenceKind::device_from, finding);
  if (!other || other->standard.empty() || !is_weight(pair.wanted)) return std::nullopt;
  if (other->at.file != told.at.file || class_of(other->at) != class_of(told.at)) return std::nullopt;
  return Explanation{
      cause_at(other->at, pair.wanted,
               mention_first(pair.wanted) + " is on " + spoken_device(pair.wanted.device) +
                   ", where this call leaves `" + other->name + "` at its default, " + other->standard +
                   ". The object that it is for works on " + spoken_device(pair.odd.device) + ", as " +
                   short_place(told.at) + " says."),
      Fix{other->at.file, other->at.line, "Give `" + other->name + "` the device that the object works on."}};
}

// `ids.to(self.device)`, where the attribute says what a constructor was told, and the weights beside it were moved on.
std::optional<Explanation> told_by_stale_attribute(const Evidence& stay, const Pair& pair, const Finding& finding) {
  const Evidence* attribute = attribute_of_constructor(pair.odd, trace::EvidenceKind::stay_from, finding);
  const LineageStep* moved = newest_move_of(pair.wanted);
  const bool kept = attribute != nullptr && !is_constructor(stay.at);
  if (!kept || moved == nullptr || !is_weight(pair.wanted) || class_of(attribute->at) != class_of(stay.at)) {
    return std::nullopt;
  }
  if (!moves_module(*moved) || makes_object(moved->at)) return std::nullopt;
  return Explanation{
      cause_at(stay.at, pair.odd,
               "This line brings " + mention(pair.odd) + " to `" + attribute->text + "`, which still says " +
                   spoken_device(pair.odd.device) + ", as " + short_place(attribute->at) + " has stored it. " +
                   mention_first(pair.wanted) + " was moved to " + spoken_device(pair.wanted.device) + " in " +
                   short_place(moved->at) + ", which the attribute does not follow."),
      Fix{stay.at.file, stay.at.line,
          "Take the device from the weights, `" + device_expression(pair.wanted) + "`, instead of `" + attribute->text +
              "`."}};
}

}  // namespace

std::optional<Explanation> move_did_nothing(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const Evidence* stay = place_of(pair->odd, trace::EvidenceKind::stayed_at, finding);
  if (stay == nullptr || !asks_to_move(*stay, pair->odd)) return std::nullopt;
  if (same_line(stay->at, *finding.where)) return asked_in_vain(*stay, *pair, finding);
  // Who gave it that device is known: that line is nearer to the mistake than the one that did as it was told.
  const auto told = decision_of(pair->odd, trace::EvidenceKind::stay_from, finding);
  const auto decided = decision_of(pair->odd, trace::EvidenceKind::device_from, finding);
  if (decided && !(told && is_changing_target(*told) && same_line(told->at, decided->at))) return std::nullopt;
  if (auto stale = told_by_stale_attribute(*stay, *pair, finding)) return stale;
  if (told) {
    if (auto other = other_by_default(*told, *pair, finding)) return other;
  }
  if (told && ((is_final(*told) && (is_device_argument(*told) || is_of_plan(*told))) || tells_helper(*told, *stay) ||
               is_changing_target(*told))) {
    return left_as_told(*told, *stay, *pair, finding);
  }
  const std::string here = spoken_device(pair->odd.device);
  const std::string call = call_at(stay->at);
  const std::string what = call.empty() ? "the move in this line" : "`" + call + "`";
  RootCause cause = cause_at(stay->at, pair->odd,
                             mention_first(pair->odd) + " is on " + here + " already when " + what +
                                 " runs, which leaves it there: what it names is " + here + " at that moment.");
  return Explanation{std::move(cause),
                     Fix{stay->at.file, stay->at.line,
                         "Name " + spoken_device(pair->wanted.device) +
                             " here, or do this when the device it names is the final one; or move it where it is "
                             "used: `" +
                             move_call(pair->odd, pair->wanted) + "`."}};
}

}  // namespace devsan::report::why
