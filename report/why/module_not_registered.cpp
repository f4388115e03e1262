// `Module.to()` reaches the modules that are attributes of a module, and those in `nn.ModuleList` and `nn.ModuleDict`.
// One in a plain list, dict or other object keeps its weights where they were made.
#include "report/operands.h"
#include "report/statement_text.h"
#include "report/why/decision.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// "self.convs = [a, b]" -> "self.convs = nn.ModuleList([a, b])"
std::string registered(const Frame& place) {
  const auto assignment = split_assignment(place.statement());
  if (!assignment || assignment->target.find(',') != std::string_view::npos) return "";
  const bool list = assignment->value.starts_with('[') && assignment->value.ends_with(']');
  const bool dict = assignment->value.starts_with('{') && assignment->value.ends_with('}');
  if (!list && !dict) return "";
  return std::string(assignment->target) + " = nn." + (list ? "ModuleList(" : "ModuleDict(") +
         std::string(assignment->value) + ")";
}

// `self.tables["test"] = nn.Embedding(n, d)`, below `self.tables = {"train": self.train_table}`: what else is in there
// may have a place of its own in the module, and this line puts what has none. Null where there is no such line.
const Frame* put_beside(const Operand& operand, const Evidence& container, const Finding& finding) {
  const Evidence* made = place_of(operand, trace::EvidenceKind::module_made_at, finding);
  if (made == nullptr || !split_assignment(container.at.statement()) || !same_function(made->at, container.at)) {
    return nullptr;
  }
  const std::string_view name = container.text;
  const std::string entry = "self" + std::string(name.substr(std::min(name.find('.'), name.size())));
  const std::size_t open = std::min(entry.find('['), entry.size());
  const bool puts = open < entry.size() && statement_of(made->at.statement()).starts_with(entry.substr(0, open + 1));
  return puts ? &made->at : nullptr;
}

// `self.network = build().to(device)`: whoever keeps the module places it, too, and was told the device by somebody.
bool is_placed_by_owner(const Operand& operand, const Finding& finding) {
  const Evidence* bound = place_of(operand, trace::EvidenceKind::module_bound_at, finding);
  const Evidence* stayed = place_of(operand, trace::EvidenceKind::stayed_at, finding);
  return bound != nullptr && stayed != nullptr && same_line(bound->at, stayed->at) &&
         decision_of(operand, trace::EvidenceKind::stay_from, finding);
}

// `self.augment = nn.Sequential(...)` in the constructor of an object that is no module: the line that keeps the module
// as the attribute at the end of the path. Null where it is not known, or the path ends otherwise.
const Evidence* kept_by_plain_object(const Operand& operand, const Evidence& container, const Finding& finding) {
  const Evidence* bound = place_of(operand, trace::EvidenceKind::module_bound_at, finding);
  const std::size_t dot = container.text.rfind('.');
  if (bound == nullptr || dot == std::string::npos) return nullptr;
  const std::string attribute = container.text.substr(dot);
  const auto assigned = split_assignment(bound->at.statement());
  return assigned && assigned->target == bound->text && bound->text == "self" + attribute ? bound : nullptr;
}

Explanation kept_in_object(const Evidence& kept, const Evidence& container, const Operand& operand,
                           const Finding& finding) {
  const Operand* tensor = counterpart_of(operand, finding.operands);
  const std::string there = tensor != nullptr ? spoken_device(tensor->device) : "the device that it is used on";
  return {cause_at(kept.at, operand,
                   mention_first(operand) +
                       " belongs to a module that this line keeps in an object. The model has it as `" +
                       container.text + "`, where moving the model does not find it: `.to()` only follows attributes " +
                       "that are modules, `nn.ModuleList` and `nn.ModuleDict`."),
          Fix{kept.at.file, kept.at.line,
              "Keep `" + kept.text + "` as an attribute of a module that is moved; or move it to " + there +
                  " by itself, before it is used."}};
}

// `self.__dict__[name] = value` in a `__setattr__()` of the module's own class.
Explanation stored_past_module(const Evidence& own, const Evidence& container, const Operand& operand) {
  return {cause_at(own.at, operand,
                   mention_first(operand) + " belongs to a module that is kept in `" + container.text + "`. `" +
                       own.text + "` stores attributes by itself, in this line, and `nn.Module` is not told of any: " +
                       "moving it does not reach them."),
          Fix{own.at.file, own.at.line,
              "Hand the attribute on to `nn.Module`: `super().__setattr__(…)` with the same name and value."}};
}

}  // namespace

std::optional<Explanation> module_not_registered(const Finding& finding) {
  for (const Operand& operand : finding.operands) {
    const Evidence* container = evidence_of(operand, trace::EvidenceKind::module_not_registered);
    const bool stayed = operand.odd || (is_weight(operand) && operand.on_cpu());
    if (!stayed || container == nullptr || newest_move_of(operand) != nullptr) continue;
    if (is_placed_by_owner(operand, finding)) continue;
    if (const Evidence* own = place_of(operand, trace::EvidenceKind::own_setattr_at, finding)) {
      return stored_past_module(*own, *container, operand);
    }
    const Frame* place = is_changeable(container->at, finding) ? &container->at : nullptr;
    const Evidence* kept = place == nullptr ? kept_by_plain_object(operand, *container, finding) : nullptr;
    if (kept != nullptr) return kept_in_object(*kept, *container, operand, finding);
    if (place == nullptr && !operand.lineage.empty() && is_changeable(operand.lineage.back().at, finding)) {
      place = &operand.lineage.back().at;
    }
    if (const Frame* beside = place != nullptr ? put_beside(operand, *container, finding) : nullptr) place = beside;
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
