#include "report/why/explain.h"

#include "report/why/rule.h"

namespace devsan::report {
namespace {

// The more a rule knows, the earlier it is asked.
constexpr Rule kRules[] = {
    why::gradient_elsewhere,        why::total_made_on_cpu,    why::cuda_scalar_was_python_float,
    why::generator_elsewhere,       why::to_result_dropped,    why::hook_bypassed,
    why::module_not_registered,     why::default_argument,     why::left_behind,
    why::optimizer_state_elsewhere, why::loaded_elsewhere,     why::moved_away,
    why::kept_from_first_call,      why::attribute_not_buffer, why::kept_by_object,
    why::module_not_moved,          why::numpy_round_trip,     why::taken_from_elsewhere,
    why::made_without_device,       why::move_where_used,
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
