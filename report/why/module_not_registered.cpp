// `Module.to()` reaches the modules that are attributes of a module, and those in `nn.ModuleList` and `nn.ModuleDict`.
// One in a plain list, dict or other object keeps its weights where they were made.
#include "report/statement_text.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// "self.convs = [a, b]" -> "self.convs = nn.ModuleList([a, b])"
std::string registered(const Frame& place) {
  const auto assignment = split_assignment(place.statement());
  if (!assignment) return "";
  const bool list = assignment->value.starts_with('[') && assignment->value.ends_with(']');
  const bool dict = assignment->value.starts_with('{') && assignment->value.ends_with('}');
  if (!list && !dict) return "";
  return std::string(assignment->target) + " = nn." + (list ? "ModuleList(" : "ModuleDict(") +
         std::string(assignment->value) + ")";
}

}  // namespace

std::optional<Explanation> module_not_registered(const Finding& finding) {
  for (const Operand& operand : finding.operands) {
    const Evidence* container = evidence_of(operand, trace::EvidenceKind::module_not_registered);
    const bool stayed = operand.odd || (is_weight(operand) && operand.on_cpu());
    if (!stayed || container == nullptr || newest_move_of(operand) != nullptr) continue;
    const Frame* place = is_changeable(container->at, finding) ? &container->at : nullptr;
    if (place == nullptr && !operand.lineage.empty() && is_changeable(operand.lineage.back().at, finding)) {
      place = &operand.lineage.back().at;
    }
    const Frame& line = place != nullptr ? *place : *finding.where;
    const std::string edit = registered(line);
    Fix fix{line.file, line.line,
            edit.empty() ? "Keep the modules of `" + container->text +
                               "` in an `nn.ModuleList` or `nn.ModuleDict`, or "
                               "make each an attribute of the module."
                         : "Register the modules: `" + edit + "`."};
    if (place == nullptr) return Explanation{std::nullopt, std::move(fix)};
    RootCause cause = cause_at(*place, operand,
                               mention_first(operand) + " belongs to a module that is kept in `" + container->text +
                                   "`, where `.to()` does not find it: only attributes that are modules, "
                                   "`nn.ModuleList` and `nn.ModuleDict` are followed.");
    return Explanation{std::move(cause), std::move(fix)};
  }
  return std::nullopt;
}

}  // namespace devsan::report::why
