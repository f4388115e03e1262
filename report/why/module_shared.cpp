// A module is given to a second object, and moving that object moves it for both: a wrapper for export takes the
// model's encoder, and `.to("cpu")` of the wrapper takes it away from the model.
#include <algorithm>

#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// It had been on the wanted device until this move.
bool was_taken_away(const Pair& pair, const LineageStep& move) {
  const auto older = [&](const LineageStep& step) { return &step > &move && step.device == pair.wanted.device; };
  return std::ranges::any_of(pair.odd.lineage, older);
}

}  // namespace

std::optional<Explanation> module_shared(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !is_weight(pair->odd)) return std::nullopt;
  const Evidence* shared = place_of(pair->odd, trace::EvidenceKind::module_shared_at, finding);
  const LineageStep* move = newest_move_of(pair->odd);
  if (shared == nullptr || move == nullptr || !was_taken_away(*pair, *move)) return std::nullopt;
  RootCause cause = cause_at(shared->at, pair->odd,
                             "This line gives `" + shared->text + "` itself to another object. " +
                                 short_place(move->at) + " moves it to " + spoken_device(pair->odd.device) +
                                 ", and so away from the module that " + mention(pair->odd) + " belongs to.");
  return Explanation{std::move(cause), Fix{shared->at.file, shared->at.line,
                                           "Give a copy, with `copy.deepcopy()`; or bring the module back to " +
                                               pair->wanted.device + " after " + short_place(move->at) + "."}};
}

}  // namespace devsan::report::why
