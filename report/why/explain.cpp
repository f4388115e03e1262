#include "report/why/explain.h"

#include "report/why/rule.h"

namespace devsan::report {
namespace {

constexpr Rule kRules[] = {
    why::cuda_scalar_was_python_float, why::generator_elsewhere, why::module_not_moved,
    why::made_without_device,          why::move_where_used,
};

}  // namespace

void explain(Finding& finding) {
  // What PyTorch allowed needs no change, and a finding about something else has rules of its own.
  if (finding.kind != Kind::device_mismatch) return;
  for (const Rule rule : kRules) {
    auto explanation = rule(finding);
    if (!explanation) continue;
    finding.root_cause = std::move(explanation->root_cause);
    finding.fix = std::move(explanation->fix);
    return;
  }
}

}  // namespace devsan::report
