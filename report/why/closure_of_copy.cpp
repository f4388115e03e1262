// A module keeps a function that means the module by its closure: `self.gate = lambda x: self.layer(x)`. Functions are
// not copied with the module that keeps them, so in every copy of it that function still calls the original's layers.
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> closure_of_copy(const Finding& finding) {
  for (const Operand& operand : finding.operands) {
    const Evidence* kept = place_of(operand, trace::EvidenceKind::closure_of_copy, finding);
    if (kept == nullptr) continue;
    RootCause cause =
        cause_at(kept->at, operand,
                 "`" + kept->text + "`, which is stored here, closes over the module that it was made for. A copy of " +
                     "that module keeps the function as it is, so " +
                     (is_weight(operand) ? "it uses " + mention(operand) + " of the original, on "
                                         : mention(operand) + " is computed with the weights of the original, on ") +
                     spoken_device(operand.device) + ".");
    return Explanation{std::move(cause), Fix{kept->at.file, kept->at.line,
                                             "Make it a method, or let it take the module as an argument, so that each "
                                             "copy uses its own weights."}};
  }
  return std::nullopt;
}

}  // namespace devsan::report::why
