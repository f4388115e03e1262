// A program that is told two devices, by name: `Experiment(sampling_device="cpu", train_device="cuda")`. What was made
// for the one is right there; the line that takes it out for the other has to bring it over.
#include <algorithm>
#include <string>

#include "report/frames.h"
#include "report/why/decision.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

struct Names {
  const Evidence* odd;
  const Evidence* wanted;
};

// The line that told both, by arguments or attributes of different names.
std::optional<Names> told_apart(const Pair& pair) {
  for (const Evidence& one : pair.odd.evidence) {
    if (one.kind != trace::EvidenceKind::device_from || !speaks_of_device(one.text)) continue;
    for (const Evidence& other : pair.wanted.evidence) {
      const bool beside = other.kind == trace::EvidenceKind::device_from && same_line(one.at, other.at);
      if (beside && other.text != one.text && speaks_of_device(other.text)) return Names{&one, &other};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Explanation> between_named_devices(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || is_weight(pair->odd) || pair->odd.lineage.empty() || !was_never_moved(pair->odd)) return std::nullopt;
  const auto names = told_apart(*pair);
  const Evidence* taken = place_of(pair->odd, trace::EvidenceKind::container_bound_at, finding);
  if (!names || taken == nullptr || same_function(pair->odd.lineage.back().at, taken->at)) return std::nullopt;
  return Explanation{
      cause_at(taken->at, pair->odd,
               "`" + taken->text + "` gets its value here, which was made on `" + names->odd->text + "`, " +
                   spoken_device(pair->odd.device) + ". It is used where `" + names->wanted->text + "` counts, " +
                   spoken_device(pair->wanted.device) + "; " + short_place(names->odd->at) + " tells both."),
      Fix{taken->at.file, taken->at.line,
          "Bring what is taken here to `" + names->wanted->text + "`, each tensor of it."}};
}

}  // namespace devsan::report::why
