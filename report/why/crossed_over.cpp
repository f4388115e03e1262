// A value passes from one accelerator's part of a program to another's. Each part is where it should be, and so is what
// each computes; what is missing is the move between them, in the line that hands the value on.
#include <algorithm>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/statement_lines.h"
#include "report/statement_text.h"
#include "report/why/decision.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// A function that has returned by now brought it to that device, and computed something there.
bool used_where_moved(const Operand& odd, const LineageStep& move, const Finding& finding) {
  return &move != &odd.lineage.front() && !is_running(move.at, finding) &&
         std::ranges::any_of(odd.lineage, [&](const LineageStep& step) {
           return step.how == trace::How::derived && step.device == odd.device && same_function(step.at, move.at);
         });
}

// Whether the value is where it should be: computed there with a module's weights, or with something else that a
// function took it there for; or given to a model that lies on both devices. `handed_over`: to what works wholly on the
// other device, so that its weights may well be what the value meets.
bool belongs_there(const Pair& pair, const LineageStep* move, bool handed_over, const Finding& finding) {
  if (is_weight(pair.odd)) return false;
  const bool meets_weight = is_weight(pair.wanted) && !handed_over;
  if (move != nullptr && moves_module(*move)) return !meets_weight;
  if (move != nullptr && used_where_moved(pair.odd, *move, finding)) return true;
  return !meets_weight && evidence_of(pair.odd, trace::EvidenceKind::model_spread) != nullptr;
}

// A part that was put into a model which is elsewhere, after that was made, is the mistake itself.
bool meets_misplaced_part(const Operand& wanted) {
  const Evidence* put = evidence_of(wanted, trace::EvidenceKind::module_put_at);
  return put != nullptr && !is_constructor(put->at);
}

// `keep = self.masks[k]`: what an object keeps stays where it is, and is taken out for work that may be anywhere.
bool is_taken_out(const Frame& place) {
  const auto assigned = split_assignment(place.statement());
  return assigned && assigned->value.starts_with("self.") && assigned->value.ends_with(']');
}

// The line that handed it on: where a function that is running got it, or else the last that computed it.
const Frame* handed_on(const Operand& odd, const LineageStep& move, const Finding& finding) {
  const Evidence* bound = place_of(odd, trace::EvidenceKind::bound_at, finding);
  if (bound != nullptr && (!same_function(bound->at, *finding.where) || is_taken_out(bound->at))) return &bound->at;
  for (const LineageStep& step : odd.lineage) {
    if (&step == &move) break;
    if (is_changeable(step.at, finding) && !made_in_failing_call(step, finding)) return &step.at;
  }
  // `for stop in self.stops:` only goes through what an object keeps, and `for layer, outputs in record.items():`
  // through what is on whatever device: the line that uses an entry knows what it meets.
  const bool kept = evidence_of(odd, trace::EvidenceKind::list_stored_at) != nullptr;
  if (bound == nullptr || kept || same_line(bound->at, *finding.where)) return nullptr;
  return is_loop(bound->at) && is_changeable(*finding.where, finding) ? &*finding.where : &bound->at;
}

Explanation handed_over_at(const Frame& place, const LineageStep* move, const Pair& pair, const Finding& finding) {
  std::string why = mention_first(pair.odd) + " comes from " + pair.odd.device;
  if (move != nullptr) {
    why += ", where " + short_place(move->at) +
           (moves_module(*move)     ? " put the weights that it is computed with"
            : !move->within.empty() ? " has a library put what it is computed with"
                                    : " takes it to be used there");
  }
  why += ". This line hands it on as it is, and what it meets is on " + pair.wanted.device + ".";
  std::string text = "Bring it to " + pair.wanted.device + " in this line";
  if (!same_line(place, *finding.where)) {
    text += "; or " + where_used(pair.odd, pair.wanted, finding);
  }
  return {cause_at(place, pair.odd, std::move(why)), Fix{place.file, place.line, text + "."}};
}

// The line that moves what is given with it, and leaves this one.
Explanation left_by_move(const Evidence& beside, const Evidence& crossing, const Pair& pair) {
  return {cause_at(beside.at, pair.odd,
                   "This line moves `" + beside.text + "` to where it is used next. `" + crossing.text +
                       "`, which is given with it in " + short_place(crossing.at) + ", stays on " + pair.odd.device +
                       "; what it meets is on " + pair.wanted.device + "."),
          Fix{beside.at.file, beside.at.line, "Move `" + crossing.text + "` here, too, as `" + beside.text + "` is."}};
}

// `loss / count`, under `labels = labels.to(logits.device)`: two that came together.
Explanation left_beside(const Frame& moved, const Pair& pair, const Finding& finding) {
  return {cause_at(*finding.where, pair.odd,
                   mention_first(pair.odd) + " comes into this function from " + pair.odd.device +
                       ". What came with it is moved in " + short_place(moved) +
                       ", and this is not; what it meets is on " + pair.wanted.device + "."),
          Fix{finding.where->file, finding.where->line, "Move it, too: `" + move_call(pair.odd, pair.wanted) + "`."}};
}

// `shift_labels = labels[:, 1:].reshape(-1)`, in a function that a spread model calls: what came from outside is made
// into what is needed here, beside what it meets. None of the calls on the way knows where that will be.
const Frame* made_for_use(const Pair& pair, const Frame& crossing, const Finding& finding) {
  if (evidence_of(pair.odd, trace::EvidenceKind::model_spread) == nullptr) return nullptr;
  if (const LineageStep* list = list_made_above(pair.odd, finding)) return &list->at;
  const Evidence* bound = place_of(pair.odd, trace::EvidenceKind::bound_at, finding);
  // In the failing function, or in one that waits for it and was called by the line that hands the value over.
  const auto depth_of = [&](const Frame& place) {
    return std::ranges::find_if(finding.stack, [&](const Frame& one) { return same_function(one, place); });
  };
  const bool between = bound != nullptr && depth_of(bound->at) < depth_of(crossing);
  const bool here = bound != nullptr && (same_function(bound->at, *finding.where) || between);
  const bool makes = here && split_assignment(bound->at.statement()) && !only_takes_apart(bound->at.statement());
  return makes ? &bound->at : nullptr;
}

// `logits = model(ids)`, and then `process(ids, logits)`: a model that lies on several devices gives its output on its
// last one, and who has called it goes on with that beside what the model was given.
std::optional<Explanation> left_by_spread_model(const Pair& pair, const Evidence& crossing, const Finding& finding) {
  const Evidence* model = evidence_of(pair.odd, trace::EvidenceKind::model_spread);
  if (model == nullptr || is_weight(pair.wanted)) return std::nullopt;
  const auto gives_input = [&](const Evidence& one) {
    const bool bound = one.kind == trace::EvidenceKind::bound_at || one.kind == trace::EvidenceKind::perhaps_bound_at;
    return bound && same_function(one.at, crossing.at) && one.at.line < crossing.at.line &&
           is_changeable(one.at, finding) && find_name(one.at.statement(), crossing.text) != std::string_view::npos;
  };
  // What a call hands back stands behind the line that calls.
  const auto by_model = [&](const Evidence& line, const Evidence& back) {
    return gives_input(line) && back.kind == trace::EvidenceKind::handed_back_at && class_of(back.at) == model->text;
  };
  const auto output = std::ranges::adjacent_find(pair.wanted.evidence, by_model);
  if (output == pair.wanted.evidence.end()) return std::nullopt;
  const std::string edit = assigned_after_move(output->at, crossing.text + ".device");
  return Explanation{cause_at(output->at, pair.wanted,
                              "`" + model->text + "` lies on several devices. It takes `" + crossing.text + "` from " +
                                  pair.odd.device + ", and `" + output->text + "`, which it gives here, is on " +
                                  pair.wanted.device + ": " + short_place(crossing.at) + " goes on with both."),
                     Fix{output->at.file, output->at.line,
                         "Bring the output to where its input is" + (edit.empty() ? "" : ": `" + edit + "`") + "."}};
}

// `model = dispatch(model, budget)`: one line has a library put the parts of a model on several accelerators, and a
// module within it has parts on two. The library brings over what it gives to a module as a whole; what the module does
// in between is its own.
std::optional<Explanation> cut_by_library(const Pair& pair, const LineageStep* move, const Finding& finding) {
  const Evidence* model = evidence_of(pair.odd, trace::EvidenceKind::model_spread);
  const LineageStep* other = newest_move_of(pair.wanted);
  if (model == nullptr || move == nullptr || other == nullptr || !same_line(move->at, other->at)) return std::nullopt;
  const std::string_view part = class_of(*finding.where);
  const bool within = own_function(*finding.where) == "forward" && part != model->text;
  if (move->within.empty() || other->within.empty() || !within || !is_changeable(move->at, finding)) {
    return std::nullopt;
  }
  const std::string name = "`" + std::string(part) + "`";
  return Explanation{
      cause_at(move->at, pair.odd,
               "This line has a library put the parts of `" + model->text + "` on several accelerators, and cuts a " +
                   name + " in two: " + mention(pair.odd) + " is computed by what lies on " + pair.odd.device + ", " +
                   mention(pair.wanted) + " by what lies on " + pair.wanted.device + "."),
      Fix{move->at.file, move->at.line,
          "Keep all of a " + name +
              " on one device: name the class here, if the library takes modules that it is not "
              "to split. Or bring the value over in " +
              short_place(*finding.where) + ": `" + move_call(pair.odd, pair.wanted) + "`."}};
}

// `caches = [Cache(size, device) for _ in layers]`: objects of which each goes with a part of a program that lies on
// several accelerators, made on one for all.
std::optional<Explanation> meets_made_for_all(const Pair& pair, const Finding& finding) {
  const auto told = decision_of(pair.wanted, trace::EvidenceKind::device_from, finding);
  const LineageStep* made = arrival_of(pair.wanted);
  const bool kept = evidence_of(pair.wanted, trace::EvidenceKind::held_by_object) != nullptr;
  if (!told || !kept || made == nullptr || made->how != trace::How::created || !makes_object(made->at)) {
    return std::nullopt;
  }
  if (told->at.statement().find(" for ") == std::string::npos || is_device_of_value(told->at)) return std::nullopt;
  return Explanation{cause_at(told->at, pair.wanted,
                              "This line makes one for each, and tells all of them the same device: " +
                                  mention(pair.wanted) + " is on " + pair.wanted.device + ". What goes with it, " +
                                  mention(pair.odd) + ", is on " + pair.odd.device + "."),
                     Fix{told->at.file, told->at.line,
                         "Tell each the device of what it goes with, here " + pair.odd.device +
                             "; or let it follow what it is given, in " + short_place(*finding.where) + "."}};
}

// `span = torch.arange(n, device=device)`, for `span > positions`: of two values that a function puts together it is
// given the one, and makes the other itself, on a device that it is told.
std::optional<Explanation> made_beside_argument(const Pair& pair, const Finding& finding) {
  const LineageStep* made = arrival_of(pair.wanted);
  const Evidence* told = evidence_of(pair.odd, trace::EvidenceKind::told_beside_at);
  const bool given = evidence_of(pair.odd, trace::EvidenceKind::given_at) != nullptr;
  if (made == nullptr || made->how != trace::How::created || told == nullptr || !given) return std::nullopt;
  const bool here = same_function(made->at, *finding.where) && is_changeable(made->at, finding);
  const std::string call = call_at(made->at);
  if (!here || is_weight(pair.wanted) || call.find("device=" + told->text) == std::string::npos) return std::nullopt;
  const std::string device = device_expression(pair.odd);
  const std::string edit = device.starts_with('\'') ? "" : with_argument(call, "device=" + device);
  return Explanation{
      cause_at(made->at, pair.wanted,
               "The function is given " + mention(pair.odd) + ", which is on " + pair.odd.device +
                   ". What goes with it is made here on `" + told->text + "`, which is " + pair.wanted.device + "."),
      Fix{made->at.file, made->at.line, "Make it where that is" + (edit.empty() ? "." : ": `" + edit + "`.")}};
}

// `record[k][rows]` in `for k, activation in record.items():`, of what the parts of a spread model gave: what is made
// for all turns of the loop has to go where each entry is.
std::optional<Explanation> meets_entries_of_spread(const Pair& pair, const Finding& finding) {
  const Evidence* bound = place_of(pair.odd, trace::EvidenceKind::bound_at, finding);
  if (bound == nullptr || !is_loop(bound->at) || !same_function(bound->at, *finding.where)) return std::nullopt;
  const bool spread = evidence_of(pair.odd, trace::EvidenceKind::model_spread) != nullptr;
  const bool before = !pair.wanted.lineage.empty() && same_function(pair.wanted.lineage.front().at, bound->at) &&
                      pair.wanted.lineage.front().at.line < bound->at.line;
  if (!spread || !before || is_weight(pair.wanted) || !is_changeable(*finding.where, finding)) return std::nullopt;
  const Frame place = line_of_argument(*finding.where, pair.wanted.text);
  return Explanation{
      cause_at(place, pair.wanted,
               mention_first(pair.odd) + ", which the loop in " + short_place(bound->at) + " has come to, is on " +
                   pair.odd.device + "; entries are on several devices. " + mention_first(pair.wanted) +
                   " was made for all of them, on " + pair.wanted.device + ", and this line uses it as it is."),
      Fix{place.file, place.line, "Bring it to where each entry is: `" + move_call(pair.wanted, pair.odd) + "`."}};
}

}  // namespace

std::optional<Explanation> crossed_over(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !on_accelerator(pair->odd) || !on_accelerator(pair->wanted)) return std::nullopt;
  const LineageStep* move = newest_move_of(pair->odd);
  const Evidence* crossing = place_of(pair->odd, trace::EvidenceKind::crossing_at, finding);
  if (crossing != nullptr && meets_misplaced_part(pair->wanted)) return std::nullopt;
  if (!belongs_there(*pair, move, crossing != nullptr, finding)) return std::nullopt;
  if (auto cut = cut_by_library(*pair, move, finding)) return cut;
  if (auto all = meets_made_for_all(*pair, finding)) return all;
  if (auto made = made_beside_argument(*pair, finding)) return made;
  if (auto entries = meets_entries_of_spread(*pair, finding)) return entries;
  if (crossing != nullptr) {
    if (auto output = left_by_spread_model(*pair, *crossing, finding)) return output;
    if (const Frame* made = made_for_use(*pair, crossing->at, finding)) {
      return handed_over_at(*made, move, *pair, finding);
    }
  }
  // The failing function itself brings what comes with it.
  const Evidence* alike = place_of(pair->odd, trace::EvidenceKind::made_alike_moved_at, finding);
  if (crossing != nullptr && alike != nullptr && same_function(alike->at, *finding.where) &&
      is_changeable(*finding.where, finding)) {
    return left_beside(alike->at, *pair, finding);
  }
  const Evidence* beside = place_of(pair->odd, trace::EvidenceKind::crossing_beside_at, finding);
  if (crossing != nullptr && beside != nullptr) return left_by_move(*beside, *crossing, *pair);
  if (crossing != nullptr) {
    return handed_over_at(line_of_argument(crossing->at, crossing->text), move, *pair, finding);
  }
  const Frame* place = move != nullptr ? handed_on(pair->odd, *move, finding) : nullptr;
  if (place == nullptr || same_line(*place, move->at)) return std::nullopt;
  // A function that brings it there for one that it defines, as a hook is, has settled on a device for all of its
  // calls.
  const std::string within = move->at.function + ".<locals>.";
  if (same_function(*place, move->at) && finding.where->function.starts_with(within)) return std::nullopt;
  return handed_over_at(*place, move, *pair, finding);
}

}  // namespace devsan::report::why
