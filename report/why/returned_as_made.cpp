// A wrapper with a GPU of its own, as an expert or an adapter is: it brings its input there, and returns its result
// there, too. Its caller works where the input came from.
#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> returned_as_made(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !on_accelerator(pair->odd) || !on_accelerator(pair->wanted)) return std::nullopt;
  const Evidence* of_odd = place_of(pair->odd, trace::EvidenceKind::returned_at, finding);
  const Operand& made = of_odd != nullptr ? pair->odd : pair->wanted;
  const Operand& other = of_odd != nullptr ? pair->wanted : pair->odd;
  const Evidence* returned = place_of(made, trace::EvidenceKind::returned_at, finding);
  if (returned == nullptr || is_weight(made)) return std::nullopt;
  const std::string argument = "`" + returned->text + "`";
  return Explanation{cause_at(returned->at, made,
                              "`" + returned->at.function + "` brings " + argument + " from " + other.device + " to " +
                                  made.device + ", and this line returns what it makes of that as it is. Its caller " +
                                  "goes on with values on " + other.device + "."),
                     Fix{returned->at.file, returned->at.line,
                         "Bring the result back in this line, with `.to()`, to the device that " + argument +
                             " came from; or where it is used, in " + short_place(*finding.where) + ": `" +
                             move_call(made, other) + "`."}};
}

}  // namespace devsan::report::why
