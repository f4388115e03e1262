// `policy.target_model`, beside `policy.target_models` with a copy of it for each device: what was to be copied from is
// used itself.
#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> copy_not_taken(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !is_weight(pair->odd) || was_moved(pair->odd)) return std::nullopt;
  const Evidence* taken = place_of(pair->odd, trace::EvidenceKind::module_twin_at, finding);
  if (taken == nullptr) return std::nullopt;
  const std::string there = spoken_device(pair->wanted.device);
  return Explanation{cause_at(taken->at, pair->odd,
                              "This line uses the module that " + mention(pair->odd) + " belongs to, which is on " +
                                  spoken_device(pair->odd.device) + ". The object that keeps it has a copy of it on " +
                                  there + ", in `" + taken->text + "`."),
                     Fix{taken->at.file, taken->at.line, "Take the copy on " + there + " from `" + taken->text + "`."}};
}

}  // namespace devsan::report::why
