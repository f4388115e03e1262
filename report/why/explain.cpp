#include "report/why/explain.h"

#include <span>

#include "report/program_lines.h"
#include "report/why/rule.h"

namespace devsan::report {
namespace {

struct NamedRule {
  const char* name;
  Rule recognise;
};

constexpr NamedRule kRules[] = {
#define DEVSAN_RULE(name, meaning) {#name, why::name},
#include "report/why/rules.def"
#undef DEVSAN_RULE
};

constexpr NamedRule kTrafficRules[] = {
#define DEVSAN_RULE(name, meaning) {#name, why::name},
#include "report/why/traffic_rules.def"
#undef DEVSAN_RULE
};

// What PyTorch allowed needs no change.
std::span<const NamedRule> rules_for(const Finding& finding) {
  if (finding.traffic) return kTrafficRules;
  return finding.kind == Kind::device_mismatch ? std::span(kRules) : std::span<const NamedRule>();
}

struct Answer {
  std::string rule;
  Explanation explanation;
};

// Of the first rule that knows one.
Answer answer_to(const Finding& finding) {
  for (const NamedRule& rule : rules_for(finding)) {
    if (auto explanation = rule.recognise(finding)) return {rule.name, std::move(*explanation)};
  }
  return {};
}

}  // namespace

void explain(Finding& finding) {
  if (rules_for(finding).empty()) return;
  Answer answer = answer_to(finding);
  // Nothing that the program did explains what fails inside of a library: then the mistake may well be that one's.
  if (!answer.explanation.root_cause && finding.where && finding.where->library) {
    answer = answer_to(told_from_libraries(finding));
  }
  if (answer.rule.empty()) return;
  finding.rule = answer.rule;
  finding.root_cause = std::move(answer.explanation.root_cause);
  finding.fix = std::move(answer.explanation.fix);
}

}  // namespace devsan::report
