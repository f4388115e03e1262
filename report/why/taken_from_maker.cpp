// `tokens = tokenize(texts)`: a helper makes a tensor of Python's values, and knows of no device. The object that takes
// it keeps one, and is where it has to be moved.
#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> taken_from_maker(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || is_weight(pair->odd) || !pair->odd.on_cpu() || !on_accelerator(pair->wanted)) return std::nullopt;
  const Evidence* taken = place_of(pair->odd, trace::EvidenceKind::taken_from_maker_at, finding);
  if (taken == nullptr || !was_never_moved(pair->odd) || pair->odd.lineage.empty()) return std::nullopt;
  const std::string edit = assigned_after_move(taken->at, taken->text);
  return Explanation{
      cause_at(taken->at, pair->odd,
               short_place(pair->odd.lineage.back().at) + " makes " + mention(pair->odd) +
                   ", or what it is computed from, and is told no device. This line takes it as it is, "
                   "on the CPU, in an object that works on `" +
                   taken->text + "`."),
      Fix{taken->at.file, taken->at.line,
          "Move it where it is taken" + (edit.empty() ? ", to `" + taken->text + "`." : ": `" + edit + "`.")}};
}

}  // namespace devsan::report::why
