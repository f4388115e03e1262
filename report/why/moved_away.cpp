// Somebody put the value on its device: `.cpu()`, `.to("cuda:1")`, or `.to()` of the module that it was computed with.
#include <algorithm>

#include "report/frames.h"
#include "report/statement_lines.h"
#include "report/statement_text.h"
#include "report/why/decision.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/function_names.h"
#include "trace/odd_operand.h"

namespace devsan::report::why {

namespace {

// Between accelerators a table of places says where each is; `m.to(gpu if name in plan else "cpu")` goes by what is in
// it.
bool asks_condition(const LineageStep& move) {
  return call_at(move.at).find(" if ") != std::string::npos;
}
bool plan_decides(const LineageStep& move, const Pair& pair) {
  return asks_condition(move) || (on_accelerator(pair.odd) && on_accelerator(pair.wanted));
}

// A constructor does as it is told; what runs later could look where the value is needed, unless its caller tells it in
// so many words to go elsewhere. `kept`: an attribute does.
bool obeys(const LineageStep& move, const Decision& decided, bool kept) {
  return is_device_argument(decided) && (is_constructor(move.at) || (is_final(decided) && !kept));
}

// Put where its module was to be, by the constructor that keeps it in an attribute; then the module was moved on, and a
// plain attribute does not go with it.
bool is_left_by_module(const LineageStep& move, const Pair& pair, const Finding& finding) {
  const Evidence* stored = place_of(pair.odd, trace::EvidenceKind::attribute_set_at, finding);
  const bool kept = evidence_of(pair.odd, trace::EvidenceKind::held_by_module) != nullptr && stored != nullptr &&
                    same_line(stored->at, move.at) && is_constructor(move.at);
  const LineageStep* moved_on = newest_move_of(pair.wanted);
  return kept && on_accelerator(pair.odd) && moved_on != nullptr && moves_module(*moved_on);
}

// It was where it should be by then, and a line took what it came with from there to where it is missed now.
bool was_passed_over(const Pair& pair, const Finding& finding) {
  return on_accelerator(pair.odd) && on_accelerator(pair.wanted) &&
         place_of(pair.odd, trace::EvidenceKind::sibling_moved, finding) != nullptr;
}

Explanation told_to_move(const Decision& decided, const LineageStep& move, const Pair& pair, const Finding& finding) {
  const Frame place = line_of_keyword(decided.at, decided.name);
  RootCause cause =
      cause_at(place, pair.odd,
               short_place(move.at) + " puts it on " + spoken_device(pair.odd.device) + ", " + because_of(decided) +
                   ". What it meets is on " + spoken_device(pair.wanted.device) + ".");
  const std::string change = is_of_plan(decided) && asks_condition(move)
                                 ? "Let the table have in it what is used next on " +
                                       spoken_device(pair.wanted.device) + ", for every key that is asked for"
                                 : change_of(decided, pair, finding);
  return {std::move(cause), Fix{place.file, place.line, change + "; or move the value where it is used."}};
}

// `def detach_image(image): return image.detach().cpu()`: a function that does nothing but move what it is given; the
// line that calls it decides. Null where it does more, or nobody can be asked to change that line.
const Frame* call_of_mover(const LineageStep& move, const Operand& odd, const Finding& finding) {
  const auto computes = [&](const LineageStep& step) {
    return &step != &move && same_function(step.at, move.at) && !same_line(step.at, move.at);
  };
  if (!only_hands_back_moved(move.at.statement()) || std::ranges::any_of(odd.lineage, computes)) return nullptr;
  const auto outside = std::ranges::find_if(move.calls, [&](const Frame& call) {
    return trace::function_around(call.function) != move.at.function || call.file != move.at.file;
  });
  const bool found = outside != move.calls.end() && is_changeable(*outside, finding);
  return found && outside->function.find("<lambda>") == std::string::npos ? &*outside : nullptr;
}

Explanation sent_to_mover(const Frame& call, const LineageStep& move, const Pair& pair, const Finding& finding) {
  const std::string there = spoken_device(pair.wanted.device);
  return {cause_at(call, pair.odd,
                   "This line has it put on " + spoken_device(pair.odd.device) + ": `" + move.at.function + "`, in " +
                       short_place(move.at) + ", does nothing else with what it is given. What it meets is on " +
                       there + "."),
          Fix{call.file, call.line,
              "Leave it where it is in this line, or keep what the call gives apart from what is used on " + there +
                  "; or move it back " + where_used(pair.odd, pair.wanted, finding) + "."}};
}

// Who sends it away brings such back in a line of its own, which has left this one out.
std::optional<Explanation> not_brought_back(const LineageStep& move, const Pair& pair, const Finding& finding) {
  const Evidence* back = place_of(pair.odd, trace::EvidenceKind::brought_back_at, finding);
  if (back == nullptr || !pair.odd.on_cpu() || move.calls.empty()) return std::nullopt;
  const Evidence* condition = place_of(pair.odd, trace::EvidenceKind::brought_back_if_at, finding);
  const Frame& place = condition != nullptr ? condition->at : back->at;
  return Explanation{
      cause_at(place, pair.odd,
               short_place(move.calls.front()) + " sends it to the CPU, to be kept there until " +
                   (condition != nullptr ? short_place(back->at) + ", under this condition," : "this line") +
                   " calls `" + back->text + "` to bring it back. For what is used in " + short_place(*finding.where) +
                   " that was not done."),
      Fix{place.file, place.line,
          "Bring back what is used next, on " + spoken_device(pair.wanted.device) + ", whichever comes in between."}};
}

// `table.index_select(0, steps.cpu())`: the failing line brings one to the host on purpose, so the other should be
// there, and somebody has moved that away.
std::optional<Explanation> moved_from_host_work(const LineageStep& move, const Pair& pair, const Finding& finding) {
  const bool on_purpose = made_in_failing_call(move, finding) && pair.odd.on_cpu() && names_device_itself(move.at);
  const LineageStep* other = on_purpose ? newest_move_of(pair.wanted) : nullptr;
  if (other == nullptr || moves_module(*other) || !is_changeable(other->at, finding)) return std::nullopt;
  if (made_in_failing_call(*other, finding) || &pair.wanted.lineage.front() != other) return std::nullopt;
  return Explanation{
      cause_at(other->at, pair.wanted,
               "This line moves " + mention(pair.wanted) + " to " + spoken_device(pair.wanted.device) +
                   ". What is used with it in " + short_place(*finding.where) + ", " + mention(pair.odd) +
                   ", is brought to the CPU there, where the other was before."),
      Fix{other->at.file, other->at.line,
          "Use a copy on " + spoken_device(pair.wanted.device) + " here, and leave what is kept where it was; or let " +
              short_place(*finding.where) + " follow its device."}};
}

// `index = index.to(self.keys.device)`, and then `self.values.index_select(0, index)`: it is brought to one of several
// values that the object keeps where each of them belongs.
std::optional<Explanation> brought_to_another(const LineageStep& move, const Pair& pair, const Finding& finding) {
  const Evidence* stayed = place_of(pair.wanted, trace::EvidenceKind::stayed_at, finding);
  const LineageStep* moved = newest_move_of(pair.wanted);
  const Frame* brought = stayed != nullptr ? &stayed->at : moved != nullptr ? &moved->at : nullptr;
  const bool kept = evidence_of(pair.odd, trace::EvidenceKind::held_by_object) != nullptr &&
                    class_of(move.at) == class_of(*finding.where);
  if (brought == nullptr || !kept || !same_function(*brought, *finding.where) || !is_device_of_value(*brought)) {
    return std::nullopt;
  }
  const std::string& line = brought->statement();
  if (same_line(*brought, *finding.where) || line.find(pair.odd.name + ".device") != line.npos) return std::nullopt;
  return Explanation{
      cause_at(*brought, pair.wanted,
               "This line brings " + mention(pair.wanted) + " to the device of one value, " +
                   spoken_device(pair.wanted.device) + ". It is used with another one as well, " + mention(pair.odd) +
                   ", which " + short_place(move.at) + " keeps on " + spoken_device(pair.odd.device) + "."),
      Fix{brought->file, brought->line,
          "Bring it to each value that it is used with; in " + short_place(*finding.where) + ": `" +
              move_call(pair.wanted, pair.odd) + "`."}};
}

// `return x.to("cpu"), self.device`, and then `x.to(device)`: what was sent to the host is brought back to another
// accelerator than it came from, by the device that was handed on with it.
std::optional<Explanation> brought_back_elsewhere(const LineageStep& move, const Pair& pair, const Finding& finding) {
  if (!on_accelerator(pair.odd) || !on_accelerator(pair.wanted)) return std::nullopt;
  const LineageStep* sent = move_before(pair.odd, move);
  if (sent == nullptr || sent == &pair.odd.lineage.back()) return std::nullopt;
  const bool parked = sent->device == "cpu" && (sent + 1)->device == pair.wanted.device;
  const bool hands_device = sent->at.statement().find("device") != std::string::npos;
  if (!parked || !hands_device || same_function(sent->at, move.at) || class_of(sent->at) != class_of(move.at) ||
      !is_changeable(sent->at, finding)) {
    return std::nullopt;
  }
  return Explanation{
      cause_at(sent->at, pair.odd,
               "This line sends it to the CPU from " + pair.wanted.device + ", and " + short_place(move.at) +
                   " brings it back to " + pair.odd.device + ", by the device that is handed on here."),
      Fix{sent->at.file, sent->at.line, "Hand on the device of each value itself, as it was: `.device`."}};
}

// `return loss.cpu()` in the forward of a `torch.autograd.Function`: a gradient comes back to where the result was, and
// the backward brings it to what the forward has kept.
std::optional<Explanation> came_back_as_gradient(const LineageStep& move, const Pair& pair, const Finding& finding) {
  const bool own = is_in_own_forward(move.at, finding) && statement_of(move.at.statement()).starts_with("return ");
  const bool kept = evidence_of(pair.wanted, trace::EvidenceKind::held_by_object) != nullptr;
  if (!own || !kept || !is_changeable(*finding.where, finding)) return std::nullopt;
  const Evidence* bound = place_of(pair.odd, trace::EvidenceKind::bound_at, finding);
  const bool here = bound != nullptr && same_function(bound->at, *finding.where);
  const Frame& place = here ? bound->at : *finding.where;
  return Explanation{
      cause_at(place, pair.odd,
               mention_first(pair.odd) + " is the gradient of what " + short_place(move.at) + " has returned, on " +
                   spoken_device(pair.odd.device) + ", and so is there, too. " + mention_first(pair.wanted) +
                   ", which the forward has kept, is on " + spoken_device(pair.wanted.device) + "."),
      Fix{place.file, place.line,
          "Bring the gradient to what the forward has kept: `" + move_call(pair.odd, pair.wanted) + "`."}};
}

// It was computed from a weight of a module that moved, and a `.to(self.device)` of its own has left it where that was:
// the later line is the one that says where it is to be.
bool is_settled_later(const LineageStep& move, const Pair& pair, const Finding& finding) {
  const Evidence* stayed = place_of(pair.odd, trace::EvidenceKind::stayed_at, finding);
  const bool moves = stayed != nullptr && calls_move(call_at(stayed->at)) && !same_line(stayed->at, move.at);
  return moves && moves_module(move) && !is_weight(pair.odd);
}

// `labels = ids.clone()`, below `ids = ids.to(first)`: the ids are where they are needed, and a copy of its own goes to
// what is on another accelerator. Null where the function makes no copy.
const LineageStep* copy_of_moved(const LineageStep& move, const Pair& pair, const Finding& finding) {
  if (!on_accelerator(pair.odd) || !on_accelerator(pair.wanted)) return nullptr;
  const auto newer = std::ranges::subrange(pair.odd.lineage.data(), &move);
  const auto copy = std::ranges::find_if(newer, [&](const LineageStep& step) {
    const auto assigned = split_assignment(step.at.statement());
    return trace::operator_base_name(step.op) == "clone" && assigned && assigned->value.ends_with(".clone()") &&
           !same_line(step.at, move.at) && same_function(step.at, move.at) && is_changeable(step.at, finding);
  });
  return copy == newer.end() ? nullptr : &*copy;
}

Explanation copied_in_place(const LineageStep& copy, const LineageStep& move, const Pair& pair) {
  const std::string there = spoken_device(pair.wanted.device);
  const std::string edit = assigned_after_move(copy.at, "'" + pair.wanted.device + "'");
  return {
      cause_at(copy.at, pair.odd,
               "This line makes a copy of what " + short_place(move.at) + " put on " + spoken_device(pair.odd.device) +
                   ", and leaves the copy there. What that meets is on " + there + "."),
      Fix{copy.at.file, copy.at.line,
          "Make the copy where it is used, on " + there + (edit.empty() ? "." : ": `" + edit + "`.")}};
}

// `self.device = torch.device(device)` in the constructor of a module that has been moved since: the attribute says
// where the module was. Null where it does not.
const Evidence* device_from_before_move(const LineageStep& move, const Pair& pair, const Finding& finding) {
  const LineageStep* since = newest_move_of(pair.wanted);
  const bool own = made_in_failing_call(move, finding) && is_weight(pair.wanted) && since != nullptr &&
                   moves_module(*since) && was_on(pair.wanted, pair.odd.device);
  const Evidence* kept = own ? attribute_of_constructor(pair.odd, trace::EvidenceKind::device_from, finding) : nullptr;
  const bool same_class = kept != nullptr && class_of(kept->at) == class_of(*finding.where);
  return same_class && class_of(since->at) != class_of(kept->at) ? kept : nullptr;
}

Explanation moved_without_device(const Evidence& kept, const LineageStep& move, const Pair& pair) {
  return {
      cause_at(kept.at, pair.odd,
               "`" + kept.text + "` gets its value here, when the object is made: " + spoken_device(pair.odd.device) +
                   ". " + short_place(newest_move_of(pair.wanted)->at) + " has moved its weights to " +
                   spoken_device(pair.wanted.device) +
                   " since, and what an attribute says stays as it is: " + short_place(move.at) + " goes by it still."),
      Fix{kept.at.file, kept.at.line,
          "Ask a weight for the device where it is needed, as by `" + device_expression(pair.wanted) +
              "`, instead of keeping it here; or let `to()` of the class change it, too."}};
}

std::string change_of_move(const LineageStep& move, const Pair& pair, const Finding& finding) {
  const std::string there = spoken_device(pair.wanted.device);
  if (made_in_failing_call(move, finding)) return "Put it on " + there + " in this line, or leave it where it was.";
  const std::string used = where_used(pair.odd, pair.wanted, finding);
  // Whoever moves something from one accelerator to another needs it there, for one thing at least.
  const bool needed_there = on_accelerator(pair.odd) && on_accelerator(pair.wanted);
  if (needed_there)
    return "Move it " + used + "; or put it on " + there + " in this line, if nothing else needs it here.";
  return "Put it on " + there + " in this line, or move it back " + used + ".";
}

bool is_saving(const Frame& place) {
  const std::string_view name = own_function(place);
  return name == "state_dict" || name.starts_with("save") || name.find("checkpoint") != name.npos;
}

bool is_restoring(const Frame& place) {
  const std::string_view name = own_function(place);
  return name.starts_with("load") || name.starts_with("restore") || name.starts_with("resume");
}

// `self.groups = state["groups"]` in load_state_dict(), of what state_dict() has brought to the host: it is right to
// save it there, and who takes it back brings it to where it is used.
std::optional<Explanation> restored_as_saved(const LineageStep& move, const Pair& pair, const Finding& finding) {
  const bool saved = is_saving(move.at) || std::ranges::any_of(move.calls, is_saving);
  if (!pair.odd.on_cpu() || !saved) return std::nullopt;
  const auto takes = [&](const Evidence& one) {
    const bool stores =
        one.kind == trace::EvidenceKind::perhaps_stored_at || one.kind == trace::EvidenceKind::list_stored_at ||
        one.kind == trace::EvidenceKind::attribute_set_at || one.kind == trace::EvidenceKind::entry_put_at;
    return stores && is_restoring(one.at) && is_changeable(one.at, finding) && !calls_move(one.at.statement());
  };
  const auto stored = std::ranges::find_if(pair.odd.evidence, takes);
  if (stored == pair.odd.evidence.end()) return std::nullopt;
  return Explanation{
      cause_at(stored->at, pair.odd,
               "This line takes over what was saved, as it is. " + short_place(move.at) +
                   " has brought it to the CPU for that; what it meets is on " + spoken_device(pair.wanted.device) +
                   "."),
      Fix{stored->at.file, stored->at.line,
          "Bring it back to where it is used, on " + spoken_device(pair.wanted.device) + ", when it is taken over."}};
}

// `block(x.to(block.weight.device))`: brought to where the module that is called is. What belongs to that module, and
// meets it there, was put on another accelerator by one line for all.
std::optional<Explanation> moved_to_its_user(const LineageStep& move, const Pair& pair, const Finding& finding) {
  const LineageStep* other = newest_move_of(pair.wanted);
  const bool between = on_accelerator(pair.odd) && on_accelerator(pair.wanted) && is_weight(pair.wanted);
  if (!asks_weight(move.at) || !between || other == nullptr || !moves_module(*other)) return std::nullopt;
  if (!is_changeable(other->at, finding) || same_function(move.at, *finding.where)) return std::nullopt;
  return Explanation{
      cause_at(other->at, pair.wanted,
               "This line puts " + mention(pair.wanted) + ", and all that it moves, on " + pair.wanted.device + ". " +
                   mention_first(pair.odd) + " is brought to the module that is called, on " + pair.odd.device +
                   ", in " + short_place(move.at) + "."),
      Fix{other->at.file, other->at.line, "Move each part to where it is used, here " + pair.odd.device + "."}};
}

}  // namespace

std::optional<Explanation> moved_away(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const LineageStep* move = newest_move_of(pair->odd);
  if (move == nullptr || !is_changeable(move->at, finding)) return std::nullopt;
  if (is_left_by_module(*move, *pair, finding) || was_passed_over(*pair, finding)) return std::nullopt;
  const bool plain = evidence_of(pair->odd, trace::EvidenceKind::held_by_module) != nullptr;
  if (plain && moves_parameter(move->at)) return std::nullopt;  // attribute_not_buffer knows more
  if (is_settled_later(*move, *pair, finding)) return std::nullopt;
  if (auto other = moved_from_host_work(*move, *pair, finding)) return other;
  if (auto restored = restored_as_saved(*move, *pair, finding)) return restored;
  if (auto back = not_brought_back(*move, *pair, finding)) return back;
  if (auto gradient = came_back_as_gradient(*move, *pair, finding)) return gradient;
  if (auto another = brought_to_another(*move, *pair, finding)) return another;
  if (auto elsewhere = brought_back_elsewhere(*move, *pair, finding)) return elsewhere;
  if (const Evidence* kept = device_from_before_move(*move, *pair, finding))
    return moved_without_device(*kept, *move, *pair);
  const auto decided = decision_of(pair->odd, trace::EvidenceKind::device_from, finding);
  if (decided && is_changing_target(*decided)) {
    RootCause cause = cause_at(decided->at, pair->odd,
                               short_place(move->at) + " moves it to `" + decided->name +
                                   "`, which gets its value here: " + spoken_device(pair->odd.device) +
                                   " by then. What it meets is on " + spoken_device(pair->wanted.device) + ".");
    return Explanation{std::move(cause),
                       Fix{decided->at.file, decided->at.line,
                           "Keep the device with each value instead of one for all, or move the value to where it is "
                           "used, in " +
                               short_place(move->at) + "."}};
  }
  const bool kept = attribute_between(pair->odd, trace::EvidenceKind::device_from, finding) != nullptr;
  // A variable of the function itself: the line that gives it its value decides for all that the function moves.
  const bool here = decided && same_function(decided->at, move->at) && is_device_argument(*decided);
  const bool planned = decided && is_of_plan(*decided) && plan_decides(*move, *pair);
  if (here || planned || (decided && obeys(*move, *decided, kept)))
    return told_to_move(*decided, *move, *pair, finding);
  if (const LineageStep* copy = copy_of_moved(*move, *pair, finding)) return copied_in_place(*copy, *move, *pair);
  if (const Frame* call = call_of_mover(*move, pair->odd, finding)) return sent_to_mover(*call, *move, *pair, finding);
  if (auto apart = moved_to_its_user(*move, *pair, finding)) return apart;
  const bool itself = move == &pair->odd.lineage.front();
  RootCause cause = cause_at(move->at, pair->odd,
                             std::string("This line puts ") + (itself ? "it" : "the value that it is computed from") +
                                 " on " + spoken_device(pair->odd.device) + "; what it meets is on " +
                                 spoken_device(pair->wanted.device) + ".");
  return Explanation{std::move(cause), Fix{move->at.file, move->at.line, change_of_move(*move, *pair, finding)}};
}

}  // namespace devsan::report::why
