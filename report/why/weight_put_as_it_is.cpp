// Adapters that are swapped in, averaged weights that are put back: a line gives a module that is on an accelerator a
// weight from elsewhere, and forgets to move it.
#include <string>

#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> weight_put_as_it_is(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !is_weight(pair->odd) || !on_accelerator(pair->wanted)) return std::nullopt;
  const Evidence* put = place_of(pair->odd, trace::EvidenceKind::weight_put_at, finding);
  const bool elsewhere = model_is_elsewhere(pair->odd);
  if (put == nullptr || (!elsewhere && !was_on(pair->odd, pair->wanted.device))) return std::nullopt;
  const LineageStep* arrival = arrival_of(pair->odd);
  const std::string from = arrival != nullptr && !same_line(arrival->at, put->at)
                               ? ", where " + short_place(arrival->at) + " left it"
                               : std::string();
  return Explanation{cause_at(put->at, pair->odd,
                              "This line makes it the weight `" + put->text + "` of a module. It is on " +
                                  spoken_device(pair->odd.device) + from +
                                  (elsewhere ? "; other weights of the model are not."
                                             : "; the value that it comes from was on " + pair->wanted.device + ".")),
                     Fix{put->at.file, put->at.line,
                         "Move it here to " + spoken_device(pair->wanted.device) +
                             ": with the device of the weight that it replaces."}};
}

}  // namespace devsan::report::why
