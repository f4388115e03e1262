// A model that lies on several accelerators is given labels, masks or states that are on one of them. What they meet
// inside of it is on another one, and where that is, nobody knows but the model.
#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/function_names.h"

namespace devsan::report::why {
namespace {

// Whether a line stands in a method of this class.
bool is_method_of(const Frame& place, const std::string& type) {
  const std::string_view function = trace::function_around(place.function);
  return function.size() > type.size() && function.starts_with(type) && function[type.size()] == '.';
}

// The line of the failing function that made it of what came from outside; the failing line, where it came as it is.
// Null where the function brought it to its device itself, or computed it with weights.
const Frame* taken_over_at(const Operand& odd, const Finding& finding) {
  const Frame* newest = &*finding.where;
  for (const LineageStep& step : odd.lineage) {
    const bool here = same_function(step.at, *finding.where);
    if (step.how != trace::How::derived) return here || moves_module(step) ? nullptr : newest;
    if (!here) return newest;
    if (newest == &*finding.where && is_changeable(step.at, finding)) newest = &step.at;
  }
  return newest;
}

}  // namespace

std::optional<Explanation> inside_spread_model(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !on_accelerator(pair->odd) || !on_accelerator(pair->wanted)) return std::nullopt;
  if (is_weight(pair->odd) || is_weight(pair->wanted) || pair->odd.lineage.empty()) return std::nullopt;
  const Evidence* spread = evidence_of(pair->odd, trace::EvidenceKind::model_spread);
  if (spread == nullptr || !is_method_of(*finding.where, spread->text)) return std::nullopt;
  const Frame* place = taken_over_at(pair->odd, finding);
  if (place == nullptr) return std::nullopt;
  const bool used = same_line(*place, *finding.where);
  return Explanation{
      cause_at(*place, pair->odd,
               mention_first(pair->odd) + " comes to `" + spread->text + "` on " + pair->odd.device +
                   ". The weights of that lie on several accelerators, and what it meets is on " + pair->wanted.device +
                   ": nobody outside knows which part will use it, and nothing in here brings it there."),
      Fix{place->file, place->line,
          used ? "Bring it over where it is used: `" + move_call(pair->odd, pair->wanted) + "`."
               : "Bring it over in this line, or where it is used, in " + short_place(*finding.where) + ": `" +
                     move_call(pair->odd, pair->wanted) + "`."}};
}

}  // namespace devsan::report::why
