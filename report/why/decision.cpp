#include "report/why/decision.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Decision> decision_of(const Operand& operand, trace::EvidenceKind kind, const Finding& finding) {
  const Evidence* last = nullptr;
  for (const Evidence& evidence : operand.evidence) {
    if (evidence.kind == kind && is_changeable(evidence.at, finding)) last = &evidence;
  }
  if (last == nullptr) return std::nullopt;
  const bool stored = last->text.starts_with("self.");
  if (stored && is_constructor(last->at) && !names_device_itself(last->at)) return std::nullopt;
  const std::size_t equals = std::min(last->text.find('='), last->text.size());
  return Decision{last->at, last->text.substr(0, equals), last->text.substr(std::min(equals + 1, last->text.size()))};
}

bool keeps_type_alone(const Decision& decision) {
  const auto assigned = split_assignment(decision.at.statement());
  return assigned && assigned->value.ends_with(".device.type");
}

const Evidence* attribute_between(const Operand& operand, trace::EvidenceKind kind, const Finding& finding) {
  const auto keeps = [&](const Evidence& evidence) {
    return evidence.kind == kind && evidence.text.starts_with("self.") && is_changeable(evidence.at, finding);
  };
  const auto found = std::ranges::find_if(operand.evidence, keeps);
  return found == operand.evidence.end() ? nullptr : &*found;
}

const Evidence* attribute_of_constructor(const Operand& operand, trace::EvidenceKind kind, const Finding& finding) {
  const Evidence* attribute = attribute_between(operand, kind, finding);
  return attribute != nullptr && is_constructor(attribute->at) ? attribute : nullptr;
}

bool hands_device_on(const Evidence& evidence, const Finding& finding) {
  return evidence.kind == trace::EvidenceKind::device_from && is_changeable(evidence.at, finding) &&
         !is_beginning(evidence.at) && !evidence.text.starts_with("self.");
}

const Evidence* device_given_beside(const LineageStep& made, const Operand& other, const Finding& finding) {
  const auto gives = [&](const Evidence& one) {
    return hands_device_on(one, finding) && same_function(one.at, made.at) && !same_line(one.at, made.at) &&
           names_device(one.at);
  };
  const auto found = std::ranges::find_if(other.evidence, gives);
  return found == other.evidence.end() ? nullptr : &*found;
}

bool is_final(const Decision& decision) {
  return !decision.standard.empty() || names_device_itself(decision.at);
}

bool is_of_plan(const Decision& decision) {
  return decision.name.ends_with("[...]");
}

bool is_changing_target(const Decision& decision) {
  return decision.name.starts_with("self.") && !is_constructor(decision.at);
}

bool is_entry(const Decision& decision) {
  return decision.name.ends_with("']");
}

bool speaks_of_device(std::string_view text) {
  constexpr std::array<std::string_view, 4> kNames = {"dev", "gpu", "cuda", "rank"};
  return std::ranges::any_of(kNames, [text](std::string_view name) { return text.find(name) != text.npos; });
}

bool is_device_argument(const Decision& decision) {
  return !decision.name.starts_with("self.") && speaks_of_device(decision.name);
}

std::string because_of(const Decision& decision) {
  if (decision.standard.empty()) return "because of `" + decision.name + "`, which gets its value here";
  return "because this call does not give `" + decision.name + "`, whose default is `" + decision.standard + "`";
}

std::string change_of(const Decision& decision, const Pair& pair, const Finding& finding) {
  const std::string there = spoken_device(pair.wanted.device);
  if (is_of_plan(decision)) return "Put what is used together on one device here";
  if (decision.standard.empty()) return "Let `" + decision.name + "` be on " + there + " here";
  const std::string argument = decision.name + "=" + device_at(decision.at, pair.wanted, finding);
  const std::string edit = with_argument(call_at(decision.at), argument);
  return edit.empty() ? "Pass `" + argument + "` here" : "Pass `" + decision.name + "`: `" + edit + "`";
}

}  // namespace devsan::report::why
