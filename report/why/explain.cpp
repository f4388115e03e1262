#include "report/why/explain.h"

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

}  // namespace

void explain(Finding& finding) {
  // What PyTorch allowed needs no change, and a finding about something else has rules of its own.
  if (finding.kind != Kind::device_mismatch) return;
  for (const NamedRule& rule : kRules) {
    auto explanation = rule.recognise(finding);
    if (!explanation) continue;
    finding.rule = rule.name;
    finding.root_cause = std::move(explanation->root_cause);
    finding.fix = std::move(explanation->fix);
    return;
  }
}

}  // namespace devsan::report
