// The call that failed made the odd operand itself, in code that has no lines of Python: TorchScript, or an operator of
// an extension. Whatever made it there cannot be named; the call can, and so can the only line that traces anything.
#include "report/operands.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> made_inside_call(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !is_made_inside_call(pair->odd, finding)) return std::nullopt;
  const std::string here = spoken_device(pair->odd.device);
  const std::string there = spoken_device(pair->wanted.device);
  Fix fix{finding.where->file, finding.where->line,
          mention_first(pair->odd) + " is made inside of what this line calls, on " + here +
              ". A trace keeps the device of the example that it was made with: trace with an example on " + there +
              ", or use `torch.jit.script`. An extension has to make it on the device of its arguments. Else give this "
              "call all it takes on " +
              here + "."};
  const Evidence* traced = place_of(pair->odd, trace::EvidenceKind::traced_at, finding);
  if (traced == nullptr) return Explanation{std::nullopt, std::move(fix)};
  fix.file = traced->at.file;
  fix.line = traced->at.line;
  fix.text = "Trace with an example on " + there + ", or use `torch.jit.script`.";
  return Explanation{cause_at(traced->at, pair->odd,
                              "The trace that is made here keeps the device of its example: what it calls makes " +
                                  mention(pair->odd) + " on " + here + ", whatever it is given."),
                     std::move(fix)};
}

}  // namespace devsan::report::why
