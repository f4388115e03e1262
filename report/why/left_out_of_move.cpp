// A batch comes in parts: entries of a dict, fields of an object, arguments of one call. One line moved some of them
// and passed this one over, as a `.to()` that does not look inside nested containers does.
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// What the function that moves the others makes by itself has not come with them.
bool made_beside_move(const Operand& odd, const Evidence& sibling) {
  return !odd.lineage.empty() && same_function(odd.lineage.back().at, sibling.at);
}

}  // namespace

std::optional<Explanation> left_out_of_move(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const Evidence* sibling = place_of(pair->odd, trace::EvidenceKind::sibling_moved, finding);
  if (sibling == nullptr || made_beside_move(pair->odd, *sibling)) return std::nullopt;
  const std::string device = spoken_device(pair->wanted.device);
  RootCause cause =
      cause_at(sibling->at, pair->odd,
               "This line moves `" + sibling->text + "` to " + device + ", and leaves " + mention(pair->odd) +
                   ", which came with it, on " + spoken_device(pair->odd.device) + ".");
  return Explanation{std::move(cause),
                     Fix{sibling->at.file, sibling->at.line,
                         "Move " + mention(pair->odd) + " to " + device + " here, too; or where it is used, in " +
                             short_place(*finding.where) + ": `" + move_call(pair->odd, pair->wanted) + "`."}};
}

}  // namespace devsan::report::why
