// Parameters and buffers move with their module. One that stayed behind belongs to a module that `.to()` never reached:
// made and used apart from the model, as a loss is, or put into it after the move.
#include <algorithm>

#include "report/frames.h"
#include "report/operands.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> module_not_moved(const Finding& finding) {
  const auto stayed = std::ranges::find_if(finding.operands, [](const Operand& operand) {
    return operand.odd && is_weight(operand) && operand.on_cpu() && !was_moved(operand);
  });
  if (stayed == finding.operands.end() || !finding.where) return std::nullopt;
  const Operand* tensor = counterpart_of(*stayed, finding.operands);
  if (tensor == nullptr) return std::nullopt;

  const Evidence* bound = place_of(*stayed, trace::EvidenceKind::module_bound_at, finding);
  const bool made = !stayed->lineage.empty() && is_changeable(stayed->lineage.back().at, finding);
  const bool known = bound != nullptr || made;
  const Frame& place = bound != nullptr ? bound->at : made ? stayed->lineage.back().at : *finding.where;
  Fix fix{place.file, place.line,
          "Move the module that owns " + mention(*stayed) + " with `.to('" + tensor->device +
              "')`; if it belongs to a larger module, make it a part of that one before that one is moved."};
  if (!known) return Explanation{std::nullopt, std::move(fix)};
  if (bound != nullptr && !(made && same_line(stayed->lineage.back().at, place))) {
    const std::string where = made ? " made in " + short_place(stayed->lineage.back().at) + "," : "";
    return Explanation{
        cause_at(place, *stayed,
                 mention_first(*stayed) + " is a " + std::string(name_of(stayed->is)) + " of `" + bound->text + "`," +
                     where + " on the CPU. Nothing has moved `" + bound->text + "`, which gets its value here, since."),
        std::move(fix)};
  }
  RootCause cause = cause_at(place, *stayed,
                             mention_first(*stayed) + " is a " + std::string(name_of(stayed->is)) +
                                 " made in this line, on the CPU. Nothing has moved its module since.");
  return Explanation{std::move(cause), std::move(fix)};
}

}  // namespace devsan::report::why
