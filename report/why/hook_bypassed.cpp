// Offloading keeps weights on the CPU and brings them over in a hook that runs when their module is called. A parent
// that uses `child.weight` by itself, in a functional call, never calls the child.
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// The operator was called by the forward of one of torch's own modules, so a module was called.
bool in_module_of_torch(const Finding& finding) {
  return !finding.stack.empty() && finding.stack.front().torch &&
         finding.stack.front().file.find("/nn/modules/") != std::string::npos;
}

}  // namespace

std::optional<Explanation> hook_bypassed(const Finding& finding) {
  if (!finding.where || in_module_of_torch(finding)) return std::nullopt;
  for (const Operand& operand : finding.operands) {
    const Evidence* hook = evidence_of(operand, trace::EvidenceKind::owner_forward_hook);
    if (!operand.odd || hook == nullptr) continue;
    const bool known = is_changeable(hook->at, finding);
    const Frame& line = known ? hook->at : *finding.where;
    Fix fix{line.file, line.line,
            "Call the module that owns " + mention(operand) + " instead of using it directly in " +
                short_place(*finding.where) + ", or put the hook on the module whose forward does."};
    if (!known) return Explanation{std::nullopt, std::move(fix)};
    RootCause cause =
        cause_at(hook->at, operand,
                 "The hook `" + hook->text + "` runs when the module that owns " + mention(operand) + " is called. " +
                     short_place(*finding.where) + " uses " + mention(operand) +
                     " without calling that module, so it is still on " + spoken_device(operand.device) + ".");
    return Explanation{std::move(cause), std::move(fix)};
  }
  return std::nullopt;
}

}  // namespace devsan::report::why
