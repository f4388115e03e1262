// An object that is no module has a method by which it moves, `to` or `cuda`: one part of it is handed on as it is, or
// forgotten.
#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> left_by_own_move(const Finding& finding) {
  const auto pair = pair_of(finding);
  const Evidence* left = pair ? place_of(pair->odd, trace::EvidenceKind::left_by_own_move, finding) : nullptr;
  if (left == nullptr) return std::nullopt;
  const std::string part(attribute_of_path(left->text));
  // `Batch(self.data.to(device), self.mask)` speaks of it; a line that moves another attribute does not.
  const bool handed_on = left->at.statement().find("." + part) != std::string::npos;
  // `mask = self.mask`: the new object is made of such variables.
  const auto taken = split_assignment(left->at.statement());
  const bool as_it_is = taken && taken->value.ends_with("." + part) && is_postfix_expression(taken->value);
  const std::string subject = as_it_is ? "The method with this line" : "This line";
  const std::string what = handed_on ? ", but hands `" + part + "` on as it is: on "
                                     : ", and nothing in its method moves `" + part + "`, which is on ";
  return Explanation{
      cause_at(left->at, pair->odd,
               subject + " moves a `" + type_of_path(left->text) + "`" + what + spoken_device(pair->odd.device) +
                   ". What it meets is on " + spoken_device(pair->wanted.device) + "."),
      Fix{left->at.file, left->at.line,
          "Move `" + part + "` here, too; or move " + mention(pair->odd) + " " +
              where_used(pair->odd, pair->wanted, finding) + "."}};
}

}  // namespace devsan::report::why
