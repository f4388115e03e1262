// A generator makes numbers on its own device only. `torch.Generator()` is on the CPU unless it is told otherwise.
#include "report/operands.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> generator_elsewhere(const Finding& finding) {
  const Operand* odd = first_odd(finding.operands);
  if (odd == nullptr || !odd->generator || !finding.where) return std::nullopt;
  const Operand* tensor = counterpart_of(*odd, finding.operands);
  const std::string wanted = tensor == nullptr ? "cpu" : tensor->device;
  return Explanation{std::nullopt,
                     Fix{finding.where->file, finding.where->line,
                         "Make the generator where the numbers are wanted, with `torch.Generator(device='" + wanted +
                             "')`; or, to have the same numbers on every device, draw them on " + odd->device +
                             " with this generator and move the result with `.to('" + wanted + "')`."}};
}

}  // namespace devsan::report::why
