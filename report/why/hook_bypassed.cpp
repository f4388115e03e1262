// Offloading keeps weights on the CPU and brings them over in a hook that runs when their module, or one around it, is
// called. Who uses `child.weight` by itself, or calls another method than `forward`, never passes the hook.
#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> hook_bypassed(const Finding& finding) {
  if (!finding.where) return std::nullopt;
  for (const Operand& operand : finding.operands) {
    const Evidence* hook = evidence_of(operand, trace::EvidenceKind::owner_forward_hook);
    if (!operand.odd || hook == nullptr) continue;
    const bool known = is_changeable(hook->at, finding);
    const Frame& line = known ? hook->at : *finding.where;
    Fix fix{line.file, line.line,
            "Call the module that has the hook instead of using " + mention(operand) + " past it in " +
                short_place(*finding.where) + ", or put the hook on what is called there."};
    if (!known) return Explanation{std::nullopt, std::move(fix)};
    RootCause cause =
        cause_at(hook->at, operand,
                 "The hook `" + hook->text + "` runs when a module that " + mention(operand) +
                     " belongs to is called. " + short_place(*finding.where) + " uses " + mention(operand) +
                     " without calling that module, so it is still on " + spoken_device(operand.device) + ".");
    return Explanation{std::move(cause), std::move(fix)};
  }
  return std::nullopt;
}

}  // namespace devsan::report::why
