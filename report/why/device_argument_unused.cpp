// A function that is to put something on the device that it is given, and never looks at that argument.
#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> device_argument_unused(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !was_never_moved(pair->odd)) return std::nullopt;
  const Evidence* unused = place_of(pair->odd, trace::EvidenceKind::device_unused_at, finding);
  if (unused == nullptr) return std::nullopt;
  const std::string function = "`" + unused->at.function + "`";
  return Explanation{cause_at(unused->at, pair->odd,
                              mention_first(pair->odd) + " comes from " + function + ", which takes `" + unused->text +
                                  "` and never uses it: what this line makes is where it was, on " +
                                  spoken_device(pair->odd.device) + "."),
                     Fix{unused->at.file, unused->at.line, "Move the tensors here, with `.to(" + unused->text + ")`."}};
}

}  // namespace devsan::report::why
