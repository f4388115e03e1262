#include "report/why/explain.h"

#include <span>

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

}  // namespace

void explain(Finding& finding) {
  for (const NamedRule& rule : rules_for(finding)) {
    auto explanation = rule.recognise(finding);
    if (!explanation) continue;
    finding.rule = rule.name;
    finding.root_cause = std::move(explanation->root_cause);
    finding.fix = std::move(explanation->fix);
    return;
  }
}

}  // namespace devsan::report
