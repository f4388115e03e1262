// `new = FIXERS[type(old)](old)`, of a model that has moved: what takes the place of a part is made where modules are
// made, by a helper that knows of no device, and nothing moves what comes into the model later.
#include <string>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// The line of a function that has a helper make the part, and gives it a name.
const Frame* asked_at(const LineageStep& made, const Finding& finding) {
  if (made.calls.empty() || makes_object(made.at) || !statement_of(made.at.statement()).starts_with("return ")) {
    return nullptr;
  }
  const Frame& call = made.calls.front();
  const bool in_function = call.function != "<module>" && !is_constructor(call) && is_changeable(call, finding);
  return in_function && split_assignment(call.statement()) ? &call : nullptr;
}

}  // namespace

std::optional<Explanation> part_made_apart(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !is_weight(pair->odd) || !pair->odd.on_cpu() || pair->odd.lineage.empty()) return std::nullopt;
  const LineageStep& made = pair->odd.lineage.back();
  const Evidence* elsewhere = evidence_of(pair->odd, trace::EvidenceKind::weights_elsewhere);
  const bool apart = elsewhere != nullptr && elsewhere->text.starts_with(pair->wanted.device + " ");
  if (!apart || made.how != trace::How::created || !was_never_moved(pair->odd)) return std::nullopt;
  const Frame* asked = asked_at(made, finding);
  if (asked == nullptr || evidence_of(pair->odd, trace::EvidenceKind::made_unaware_at) == nullptr) return std::nullopt;
  const std::string edit = assigned_after_move(*asked, "'" + pair->wanted.device + "'");
  return Explanation{
      cause_at(*asked, pair->odd,
               "This line has " + short_place(made.at) + " make the part that " + mention(pair->odd) +
                   " belongs to, on the CPU, for a model whose other weights are on " + pair->wanted.device +
                   ". Nothing moves what comes into a model later."),
      Fix{asked->file, asked->line,
          "Bring it to where the part was that it replaces" + (edit.empty() ? "." : ": `" + edit + "`.")}};
}

}  // namespace devsan::report::why
