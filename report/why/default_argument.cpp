// The default value of an argument is made once, when `def` runs, on the device of that moment.
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> default_argument(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const Evidence* def = place_of(pair->odd, trace::EvidenceKind::default_argument, finding);
  if (def == nullptr) return std::nullopt;
  RootCause cause =
      cause_at(def->at, pair->odd,
               mention_first(pair->odd) + " is the default of `" + def->text +
                   "`: it is made once, when the function is defined, on " + spoken_device(pair->odd.device) + ".");
  return Explanation{std::move(cause), Fix{def->at.file, def->at.line,
                                           "Let the default be `None`, and make the tensor in the function, on " +
                                               pair->wanted.device + "."}};
}

}  // namespace devsan::report::why
