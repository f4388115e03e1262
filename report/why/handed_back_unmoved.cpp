// `batch = self.to_cuda(batch)`: a function that moves things was given it, and has handed it back as it was, by a
// condition that is wrong or too narrow.
#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

namespace {

// `isinstance(data, (dict, list))`, of a batch that is neither.
std::optional<Explanation> handed_back_whole(const Pair& pair, const Finding& finding) {
  const Evidence* passed = place_of(pair.odd, trace::EvidenceKind::passed_over_at, finding);
  const bool beside = evidence_of(pair.odd, trace::EvidenceKind::sibling_moved) != nullptr;
  if (passed == nullptr || beside || is_running(passed->at, finding)) return std::nullopt;
  const Evidence* branch = place_of(pair.odd, trace::EvidenceKind::branch_beside, finding);
  const std::string kind = "`" + passed->text + "`";
  if (passed->text == "Tensor" || passed->text == "Parameter") {
    return Explanation{cause_at(passed->at, pair.odd,
                                "The function moves what it makes of other types, and hands a " + kind +
                                    " back as it came: " + mention(pair.odd) + " stays on the CPU."),
                       Fix{passed->at.file, passed->at.line, "Move a " + kind + " here, too: `.to(...)`."}};
  }
  const std::string back = ", which is handed back as it came: " + mention(pair.odd) + " in it stays on the CPU.";
  if (branch == nullptr) {
    return Explanation{cause_at(passed->at, pair.odd, "The function has no branch for " + kind + back),
                       Fix{passed->at.file, passed->at.line,
                           "Handle " + kind + " before this line, as the other types are: move what is inside."}};
  }
  return Explanation{
      cause_at(branch->at, pair.odd, "This branch takes `" + branch->text + "`, and none takes " + kind + back),
      Fix{branch->at.file, branch->at.line,
          "Let this branch take " + kind + ", too" +
              (branch->text == "dict" ? ": ask for `collections.abc.Mapping`." : ", and move what is inside.")}};
}

}  // namespace

std::optional<Explanation> handed_back_unmoved(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !on_accelerator(pair->wanted) || !was_never_moved(pair->odd)) return std::nullopt;
  if (auto whole = handed_back_whole(*pair, finding)) return whole;
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
