// The change that is always possible: move the odd operand to the other's device in the line that failed.
#include "report/operands.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> move_where_used(const Finding& finding) {
  const Operand* odd = first_odd(finding.operands);
  if (odd == nullptr || !finding.where) return std::nullopt;
  const Operand* tensor = counterpart_of(*odd, finding.operands);
  if (tensor == nullptr) return std::nullopt;
  return Explanation{std::nullopt, Fix{finding.where->file, finding.where->line,
                                       "Move " + mention(*odd) + " from " + odd->device + " to " + tensor->device +
                                           " before this call: `" + move_call(*odd, *tensor) + "`."}};
}

}  // namespace devsan::report::why
