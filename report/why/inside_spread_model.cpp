// A model that lies on several accelerators is given labels, masks or states that are on one of them. What they meet
// inside of it is on another one, and where that is, nobody knows but the model.
#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
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

// The statement of the failing function that gives it, or what it is computed from in the failing line, its name; null
// where that is a loop, or it came with the name.
const Frame* named_place(const Operand& operand, const Finding& finding) {
  const Evidence* bound = place_of(operand, trace::EvidenceKind::bound_at, finding);
  if (bound == nullptr) bound = place_of(operand, trace::EvidenceKind::came_through_at, finding);
  const bool here = bound != nullptr && same_function(bound->at, *finding.where);
  return here && split_assignment(bound->at.statement()) ? &bound->at : nullptr;
}

// The line of the failing function that made it of what came from outside, or gave it a name; the failing line, where
// it came as it is. Null where the function brought it to its device itself, or computed it with weights.
const Frame* taken_over_at(const Operand& odd, const std::string& type, const Finding& finding) {
  const Frame* named = named_place(odd, finding);
  const Frame* newest = named != nullptr ? named : &*finding.where;
  for (const LineageStep& step : odd.lineage) {
    const bool here = same_function(step.at, *finding.where);
    // Another method of the model made it, for all parts alike.
    if (step.how == trace::How::created && !here && is_method_of(step.at, type) && is_changeable(step.at, finding)) {
      return &step.at;
    }
    if (step.how != trace::How::derived) return here || moves_module(step) ? nullptr : newest;
    if (!here && newest == &*finding.where && is_method_of(step.at, type) && is_running(step.at, finding) &&
        is_changeable(step.at, finding)) {
      newest = &step.at;
    }
    if (!here) return newest;
    if (newest == &*finding.where && is_changeable(step.at, finding)) newest = &step.at;
  }
  return newest;
}

// What the model itself keeps, and put on a device of its choice when it was made, is no value that came from outside.
const Frame* placed_at(const Operand& odd, const std::string& type, const Finding& finding) {
  const Evidence* stored = place_of(odd, trace::EvidenceKind::attribute_set_at, finding);
  const LineageStep* arrival = arrival_of(odd);
  if (stored == nullptr || arrival == nullptr || type_of_path(stored->text) != type) return nullptr;
  const bool placed = same_line(stored->at, arrival->at) && makes_object(stored->at) && names_device(arrival->at);
  return placed ? &stored->at : nullptr;
}

Explanation placed_apart(const Frame& place, const std::string& type, const Pair& pair) {
  return {cause_at(place, pair.odd,
                   mention_first(pair.odd) + " comes from what `" + type + "` keeps itself, and puts on " +
                       pair.odd.device + " in this line. What it meets is on " + pair.wanted.device + "."),
          Fix{place.file, place.line,
              "Put it on " + pair.wanted.device +
                  " in this line, beside the part that uses it; or bring it over where "
                  "it is used: `" +
                  move_call(pair.odd, pair.wanted) + "`."}};
}

// `for layer_past in past:` goes through parts that are where they belong; what each of them meets has to come to it.
std::optional<Explanation> meets_each_part(const Pair& pair, const Finding& finding) {
  const Evidence* part = place_of(pair.odd, trace::EvidenceKind::bound_at, finding);
  const Frame* named = named_place(pair.wanted, finding);
  const bool loop = part != nullptr && same_function(part->at, *finding.where) && is_loop(part->at);
  if (!loop || named == nullptr || named->line < part->at.line || same_line(*named, *finding.where))
    return std::nullopt;
  const std::string edit = assigned_after_move(*named, device_expression(pair.odd));
  return Explanation{
      cause_at(*named, pair.wanted,
               mention_first(pair.wanted) + " gets its value here, on " + pair.wanted.device + ". It meets " +
                   mention(pair.odd) + ", of which each may be on another accelerator; this one is on " +
                   pair.odd.device + "."),
      Fix{named->file, named->line,
          edit.empty() ? "Bring it to `" + device_expression(pair.odd) + "`." : "Bring it over: `" + edit + "`."}};
}

// `scale, shift = condition.chunk(2)` in a method of the model: what came from outside is taken apart where it came,
// and meets what a part has computed. Of the two the model's own is where it should be, however many others are
// elsewhere.
std::optional<Explanation> taken_up_as_it_came(const Pair& pair, const std::string& type, const Finding& finding) {
  const LineageStep* move = newest_move_of(pair.odd);
  const Evidence* bound = place_of(pair.wanted, trace::EvidenceKind::bound_at, finding);
  if (move == nullptr || !moves_module(*move) || bound == nullptr || !is_method_of(bound->at, type))
    return std::nullopt;
  if (!was_never_moved(pair.wanted) || pair.wanted.lineage.empty() || !split_assignment(bound->at.statement())) {
    return std::nullopt;
  }
  const Frame& begun = pair.wanted.lineage.back().at;
  if (makes_object(begun) || (is_running(begun, finding) && is_method_of(begun, type))) return std::nullopt;
  return Explanation{cause_at(bound->at, pair.wanted,
                              mention_first(pair.wanted) + " comes to `" + type + "` on " + pair.wanted.device +
                                  ", and is taken up here as it is. " + mention_first(pair.odd) +
                                  ", which it meets, was computed by a part on " + pair.odd.device + "."),
                     Fix{bound->at.file, bound->at.line,
                         "Bring it to the part that uses it in this line: `.to('" + pair.odd.device + "')`."}};
}

}  // namespace

std::optional<Explanation> inside_spread_model(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !on_accelerator(pair->odd) || !on_accelerator(pair->wanted)) return std::nullopt;
  if (is_weight(pair->odd) || is_weight(pair->wanted) || pair->odd.lineage.empty()) return std::nullopt;
  const Evidence* spread = evidence_of(pair->odd, trace::EvidenceKind::model_spread);
  if (spread == nullptr) return std::nullopt;
  if (auto taken = taken_up_as_it_came(*pair, spread->text, finding)) return taken;
  if (!is_method_of(*finding.where, spread->text)) return std::nullopt;
  if (auto each = meets_each_part(*pair, finding)) return each;
  if (const Frame* placed = placed_at(pair->odd, spread->text, finding))
    return placed_apart(*placed, spread->text, *pair);
  const LineageStep* list = list_made_above(pair->odd, finding);
  const Frame* place = list != nullptr ? &list->at : taken_over_at(pair->odd, spread->text, finding);
  if (place == nullptr) return std::nullopt;
  const bool used = same_line(*place, *finding.where);
  return Explanation{
      cause_at(*place, pair->odd,
               mention_first(pair->odd) + " comes to `" + spread->text + "` on " + pair->odd.device +
                   ". The weights of that lie on several accelerators, and what it meets is on " + pair->wanted.device +
                   ": nobody outside knows which part will use it, and nothing in here brings it there."),
      Fix{place->file, place->line,
          used ? "Bring it over where it is used: `" + move_call(pair->odd, pair->wanted) + "`."
               : "Bring it over in this line, or " + where_used(pair->odd, pair->wanted, finding) + "."}};
}

}  // namespace devsan::report::why
