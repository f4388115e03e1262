// An averaged copy of a model is kept on a device of its own, as its constructor was told, to save memory elsewhere.
// The line that takes the model's weights into it has to bring them there.
#include <algorithm>
#include <string>
#include <string_view>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/odd_operand.h"

namespace devsan::report::why {
namespace {

// `ema_v.lerp_(model_v, w)` and `torch.lerp(ema_v, model_v, w, out=ema_v)`: the operator writes into the copy.
bool is_target(const Operand& operand, const Finding& finding) {
  if (is_written_to(operand, finding)) return true;
  return std::ranges::any_of(finding.operands, [&](const Operand& out) {
    return out.arg == "out" && !out.name.empty() && out.name == operand.name && out.device == operand.device;
  });
}

// Both began as one value, of which `copy` is a clone; the original never was where the copy is now, after the clone.
bool is_copy_of(const Operand& copy, const Operand& original) {
  if (copy.lineage.empty() || original.lineage.empty()) return false;
  const LineageStep& one = copy.lineage.back();
  const LineageStep& other = original.lineage.back();
  const bool same_origin = same_line(one.at, other.at) && one.op == other.op && one.how == other.how;
  for (const LineageStep& step : copy.lineage) {
    if (trace::operator_base_name(step.op) == "clone") return same_origin && &step != &copy.lineage.front();
  }
  return false;
}

}  // namespace

std::optional<Explanation> updated_where_kept(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !is_changeable(*finding.where, finding)) return std::nullopt;
  const Operand& copy = is_target(pair->odd, finding) ? pair->odd : pair->wanted;
  const Operand& original = &copy == &pair->odd ? pair->wanted : pair->odd;
  if (!is_target(copy, finding) || !is_copy_of(copy, original) || !on_accelerator(original)) return std::nullopt;
  const LineageStep* move = newest_move_of(copy);
  if (move == nullptr || !makes_object(move->at) || names_device_itself(move->at)) return std::nullopt;
  // `target = model_v.detach()` gives it a name first.
  const Evidence* bound = place_of(original, trace::EvidenceKind::bound_at, finding);
  const bool named = bound != nullptr && same_function(bound->at, *finding.where) &&
                     original.name.find_first_of("[.(") == std::string::npos && split_assignment(bound->at.statement());
  const Frame& place = named ? bound->at : *finding.where;
  const std::string edit = named ? assigned_after_move(place, device_expression(copy)) : move_call(original, copy);
  return Explanation{
      cause_at(place, original,
               mention_first(copy) + " is a copy that its constructor keeps on " + spoken_device(copy.device) +
                   ", the device that it was told, in " + short_place(move->at) + ". " + mention_first(original) +
                   ", which this line takes into it, is on " + spoken_device(original.device) + "."),
      Fix{place.file, place.line,
          edit.empty() ? "Bring it to the device of the copy in this line."
                       : "Bring it to the copy in this line: `" + edit + "`."}};
}

}  // namespace devsan::report::why
