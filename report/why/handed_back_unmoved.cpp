// `batch = self.to_cuda(batch)`: a function that moves things was given it, and has handed it back as it was, by a
// condition that is wrong or too narrow.
#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> handed_back_unmoved(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !on_accelerator(pair->wanted) || !was_never_moved(pair->odd)) return std::nullopt;
  const Evidence* left = place_of(pair->odd, trace::EvidenceKind::left_by_mover_at, finding);
  if (left == nullptr || is_running(left->at, finding)) return std::nullopt;
  const bool condition = !calls_move(left->at.statement());
  return Explanation{
      cause_at(left->at, pair->odd,
               "`" + left->text + "` moves what it is given, and has handed back " + mention(pair->odd) +
                   " as it came, on the CPU: " +
                   (condition ? "this condition keeps it from being moved." : "it does not come to this line.")),
      Fix{left->at.file, left->at.line,
          condition ? "Let the condition take in what should be moved: ask the value itself for its type."
                    : "Let this line move all that should be on " + pair->wanted.device + "."}};
}

}  // namespace devsan::report::why
