// A batch comes in parts: entries of a dict, fields of an object, arguments of one call. One line moved some of them
// and passed this one over, as a `.to()` that does not look inside nested containers does, or a function that goes by
// types and does not know this one.
#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/statement_lines.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/host_names.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/words.h"

namespace devsan::report::why {
namespace {

// `{k: v.to(device) if v.is_floating_point() else v for k, v in batch.items()}`
bool goes_through_all(const Frame& place) {
  const std::size_t loop = place.statement().find(" for ");
  return loop != std::string::npos && place.statement().find(" in ", loop) != std::string::npos;
}

// What the function that moves the others makes by itself has not come with them, unless it is among all that the
// function has made before, and goes through.
bool made_beside_move(const Operand& odd, const Evidence& sibling) {
  if (odd.lineage.empty() || !same_function(odd.lineage.back().at, sibling.at)) return false;
  return !goes_through_all(sibling.at) || odd.lineage.back().at.line >= sibling.at.line;
}

// A function that goes by types has none for what holds the operand.
Explanation handed_back(const Evidence& passed, const Evidence& sibling, const std::string& left, const Pair& pair) {
  const std::string device = spoken_device(pair.wanted.device);
  if (const Evidence* branch = evidence_of(pair.odd, trace::EvidenceKind::branch_beside)) {
    return {
        cause_at(branch->at, pair.odd,
                 "This branch takes a `" + branch->text + "`, and none takes a `" + passed.text + "` with " + left +
                     " in it, which is handed back as it is, on " + spoken_device(pair.odd.device) + ". " +
                     short_place(sibling.at) + " moves `" + sibling.text + "`, which came with it, to " + device + "."),
        Fix{branch->at.file, branch->at.line,
            "Let this branch take a `" + passed.text + "`, too, and move what is inside to " + device + "."}};
  }
  return {cause_at(passed.at, pair.odd,
                   "This line hands back what the function has no branch for as it is, a `" + passed.text + "` with " +
                       left + " in it, on " + spoken_device(pair.odd.device) + ". " + short_place(sibling.at) +
                       " moves `" + sibling.text + "`, which came with it, to " + device + "."),
          Fix{passed.at.file, passed.at.line,
              "Handle `" + passed.text + "` before this line, as the other types are: move what is inside to " +
                  device + "."}};
}

// `ready[name] = value` under `else:`, where the other branch moves what is a tensor.
Explanation put_in_other_branch(const Evidence& put, const Evidence& sibling, const std::string& left,
                                const Pair& pair) {
  const std::string device = spoken_device(pair.wanted.device);
  return {cause_at(put.at, pair.odd,
                   "This branch hands on as it is what " + short_place(sibling.at) + " does not move: " + left +
                       " is in there, on " + spoken_device(pair.odd.device) + ". The other branch moves `" +
                       sibling.text + "`, which came with it, to " + device + "."),
          Fix{put.at.file, put.at.line,
              "Move what is inside to " + device + " here, too, when it is a list, tuple or dictionary of tensors."}};
}

// `for name in ("scale", "shift"):`
Explanation not_listed(const Evidence& listed, const Evidence& sibling, const Pair& pair) {
  return {
      cause_at(listed.at, pair.odd,
               "What " + short_place(sibling.at) + " moves to " + spoken_device(pair.wanted.device) +
                   " is named here, and `" + listed.text + "` is not: it stays on " + spoken_device(pair.odd.device) +
                   "."),
      Fix{listed.at.file, listed.at.line, "Name `" + listed.text + "` here, too; or go through all that there is."}};
}

// `mask = batch["mask"]` under a line that takes out the others, and moves them: the one to move it in, too.
const Evidence* taken_out_as_it_is(const Pair& pair, const Evidence& listed, const Finding& finding) {
  const Evidence* bound = place_of(pair.odd, trace::EvidenceKind::first_bound_at, finding);
  if (bound == nullptr || !same_function(bound->at, listed.at) || same_line(bound->at, listed.at)) return nullptr;
  const auto assigned = split_assignment(bound->at.statement());
  return assigned && assigned->target == bound->text && assigned->value.ends_with(']') ? bound : nullptr;
}

Explanation taken_out_beside(const Evidence& bound, const Evidence& sibling, const Pair& pair) {
  const std::string edit = assigned_after_move(bound.at, "'" + pair.wanted.device + "'");
  return {cause_at(bound.at, pair.odd,
                   "This line takes out `" + bound.text + "` as it is, on " + spoken_device(pair.odd.device) + ". " +
                       short_place(sibling.at) + " moves `" + sibling.text + "`, which came with it, to " +
                       spoken_device(pair.wanted.device) + "."),
          Fix{bound.at.file, bound.at.line,
              "Move it in this line" + (edit.empty() ? "" : ": `" + edit + "`") + "; or name it in " +
                  short_place(sibling.at) + ", too."}};
}

// `out = teacher(images.to(device))`: what is moved is given away, and no variable means it.
bool moves_in_call(const Frame& place) {
  const std::string_view text = statement_of(place.statement());
  const std::size_t move = std::min(text.find(".to("), text.find(".cuda("));
  if (move == text.npos) return false;
  const auto count = [text = text.substr(0, move)](char c) { return std::ranges::count(text, c); };
  return count('(') > count(')');
}

// `images, labels = batch`, above such a line: where a part of the batch gets its name, it can be moved for all that
// comes. Null where it is taken out otherwise.
const Evidence* unpacked_above(const Pair& pair, const Evidence& sibling, const Finding& finding) {
  const Evidence* bound = place_of(pair.odd, trace::EvidenceKind::first_bound_at, finding);
  if (bound == nullptr || !same_function(bound->at, sibling.at) || bound->at.line >= sibling.at.line) return nullptr;
  const auto assigned = split_assignment(bound->at.statement());
  const bool several = assigned && assigned->target.find(',') != std::string_view::npos;
  return several && only_takes_apart(bound->at.statement()) && moves_in_call(sibling.at) ? bound : nullptr;
}

// `prior` of `prior.base.scale`, an object that is neither tensor nor module: whether it can move itself nobody knows.
bool is_inside_object(const Operand& odd, const Evidence& given) {
  return odd.name.starts_with(given.text + ".") && evidence_of(odd, trace::EvidenceKind::held_by_object) != nullptr;
}

bool is_moved(std::string_view argument) {
  return argument.ends_with(')') && calls_move(argument);
}

// `criterion(out, target.to(device), weights)`: the call that gave it moves what it gives beside it.
std::optional<Explanation> given_beside_moved(const Pair& pair, const Finding& finding) {
  if (!pair.odd.on_cpu() || !on_accelerator(pair.wanted)) return std::nullopt;
  for (const Evidence& given : pair.odd.evidence) {
    if (given.kind != trace::EvidenceKind::given_at || !is_changeable(given.at, finding)) continue;
    const std::string source = call_at(given.at);
    const auto call = split_call(source);
    if (!call || is_moved(given.text) || is_inside_object(pair.odd, given)) continue;
    const auto moved =
        std::ranges::find_if(call->arguments, [](const ArgumentText& one) { return is_moved(one.text); });
    if (moved == call->arguments.end()) continue;
    const Frame place = line_of_argument(given.at, given.text);
    return Explanation{
        cause_at(place, pair.odd,
                 "This call gives `" + given.text + "` as it is, on the CPU, and beside it `" +
                     std::string(moved->text) + "`, which it moves."),
        Fix{place.file, place.line,
            "Move it, too: `" + (is_postfix_expression(given.text) ? given.text : "(" + given.text + ")") + ".to('" +
                pair.wanted.device + "')`."}};
  }
  return std::nullopt;
}

// `state.map(lambda x: x.to(device))`: the line that applies the function to some parts, and not to all.
const Frame* applied_at(const Evidence& sibling, const Pair& pair, const Finding& finding) {
  const LineageStep* move = newest_move_of(pair.wanted);
  if (!sibling.at.function.ends_with("<lambda>") || move == nullptr || !same_line(move->at, sibling.at)) return nullptr;
  if (move->calls.empty() || !is_changeable(move->calls.front(), finding)) return nullptr;
  return &move->calls.front();
}

// Whether a text has the variable by itself: neither a part of a longer name nor followed by an attribute.
bool has_as_it_is(std::string_view text, std::string_view variable) {
  for (std::size_t at = text.find(variable); at != text.npos; at = text.find(variable, at + 1)) {
    const std::size_t end = at + variable.size();
    const auto joins = [&](std::size_t k) { return k < text.size() && (trace::is_word(text[k]) || text[k] == '.'); };
    if (!(at > 0 && joins(at - 1)) && !joins(end)) return true;
  }
  return false;
}

// Where a move was made by a statement that returns its result, in the same function as `made`. Null where it was not.
const Frame* moving_return(const LineageStep& move, const Frame& made) {
  const auto is_it = [&](const Frame& place) {
    return same_function(place, made) && place.line > made.line &&
           statement_of(place.statement()).starts_with("return ");
  };
  if (is_it(move.at)) return &move.at;
  const auto call = std::ranges::find_if(move.calls, is_it);
  return call != move.calls.end() ? &*call : nullptr;
}

// `w = w / w.max()` and `return rows.to(device), w`: one call gave both, and its function moves the one alone.
std::optional<Explanation> returned_beside_moved(const Pair& pair, const Finding& finding) {
  const Evidence* bound = place_of(pair.odd, trace::EvidenceKind::bound_at, finding);
  if (bound == nullptr || !was_never_moved(pair.odd) || pair.odd.lineage.empty()) return std::nullopt;
  const Frame& made = pair.odd.lineage.front().at;
  const auto assigned = split_assignment(made.statement());
  if (!assigned) return std::nullopt;
  const std::string variable(assigned->target);
  for (const LineageStep& move : pair.wanted.lineage) {
    const auto gave_both = [&](const Frame& call) { return same_line(call, bound->at); };
    if (move.how != trace::How::moved || move.device != pair.wanted.device) continue;
    const Frame* place = std::ranges::any_of(move.calls, gave_both) ? moving_return(move, made) : nullptr;
    if (place == nullptr || !is_changeable(*place, finding) || !has_as_it_is(place->source, variable)) continue;
    const std::string device = spoken_device(pair.wanted.device);
    return Explanation{
        cause_at(*place, pair.odd,
                 "This line moves something of what it returns to " + device + ", and hands back `" + variable +
                     "` as it is, on " + spoken_device(pair.odd.device) + "."),
        Fix{place->file, place->line, "Return it there, too: `" + variable + ".to('" + pair.wanted.device + "')`."}};
  }
  return std::nullopt;
}

// "sample" of `mask = sample.mask`, "batch" of `y = batch["y"]`, "next(stream)" of `y = next(stream)`.
std::string_view taken_from(const Frame& place) {
  const auto assigned = split_assignment(place.statement());
  if (!assigned) return {};
  if (assigned->value.ends_with(')')) return assigned->value;
  return only_takes_apart(place.statement()) ? assigned->value.substr(0, assigned->value.find_first_of(".[")) : "";
}

// `image = sample.image.to(device)`, and in a line of its own `mask = sample.mask`: that line takes it as it is.
std::optional<Explanation> taken_beside_moved(const Evidence& sibling, const Pair& pair, const Finding& finding) {
  const Evidence* bound = place_of(pair.odd, trace::EvidenceKind::bound_at, finding);
  if (bound == nullptr || !same_function(bound->at, sibling.at) || same_line(bound->at, sibling.at))
    return std::nullopt;
  const std::string_view from = taken_from(bound->at);
  const auto beside = split_assignment(sibling.at.statement());
  if (from.empty() || from == "self" || goes_through_all(sibling.at)) return std::nullopt;
  if (!beside || !beside->value.starts_with(from) || !calls_move(beside->value)) return std::nullopt;
  const std::string device = spoken_device(pair.wanted.device);
  const std::string edit = assigned_after_move(bound->at, device_at(bound->at, pair.wanted, finding));
  return Explanation{cause_at(bound->at, pair.odd,
                              mention_first(pair.odd) + " is taken out here as it is, on " +
                                  spoken_device(pair.odd.device) + "; " + short_place(sibling.at) + " moves `" +
                                  sibling.text + "`, which comes from the same, to " + device + "."),
                     Fix{bound->at.file, bound->at.line,
                         "Move it to " + device + " here, too" + (edit.empty() ? "." : ": `" + edit + "`.")}};
}

// `self.params["noise"] = noise` under `self.params["snr"] = snr.to(device)`: the line that puts it there as it is.
std::optional<Explanation> put_beside_moved(const Evidence& sibling, const Pair& pair, const Finding& finding) {
  const Evidence* put = place_of(pair.odd, trace::EvidenceKind::entry_put_at, finding);
  if (put == nullptr || !same_function(put->at, sibling.at) || same_line(put->at, sibling.at)) return std::nullopt;
  if (!stores_entry(put->at.statement()) || !stores_entry(sibling.at.statement())) return std::nullopt;
  const std::string device = spoken_device(pair.wanted.device);
  return Explanation{
      cause_at(put->at, pair.odd,
               "This line puts " + mention(pair.odd) + " into `" + put->text + "` as it is, on " +
                   spoken_device(pair.odd.device) + ". " + short_place(sibling.at) + " moves `" + sibling.text +
                   "`, which is put beside it, to " + device + "."),
      Fix{put->at.file, put->at.line,
          "Move it to " + device + " here, too; or " + where_used(pair.odd, pair.wanted, finding) + "."}};
}

// `self.mean = solve(self.covar, self.targets)`, in a method: what an object has computed for itself since, and kept,
// has not come with the others.
bool is_result_of_holder(const Operand& odd, const Finding& finding) {
  const Evidence* held = evidence_of(odd, trace::EvidenceKind::held_by_object);
  const Evidence* stored = held != nullptr ? store_of(odd, *held, finding) : nullptr;
  return stored != nullptr && !is_constructor(stored->at) && !odd.lineage.empty() &&
         odd.lineage.front().how == trace::How::derived && same_line(odd.lineage.front().at, stored->at) &&
         class_of(stored->at) == type_of_path(held->text);
}

// A line that moves all tensors of a dictionary, and nothing chooses among them.
bool moves_every_tensor(const Frame& place) {
  const std::string& text = place.statement();
  const std::size_t condition = text.find(" if ");
  const bool by_type = condition != text.npos && (text.find("is_tensor(", condition) != text.npos ||
                                                  text.find("Tensor)", condition) != text.npos);
  return goes_through_all(place) && text.find(".items()") != text.npos && (condition == text.npos || by_type);
}

// `batch["ids"] = torch.tensor(ids)`: had it been there when the others were moved, it would have come with them.
std::optional<Explanation> put_after_move(const Evidence& sibling, const Pair& pair, const Finding& finding) {
  if (pair.odd.lineage.empty() || !moves_every_tensor(sibling.at)) return std::nullopt;
  const LineageStep& made = pair.odd.lineage.front();
  const bool puts = stores_entry(made.at.statement()) && is_changeable(made.at, finding) && was_never_moved(pair.odd) &&
                    !made_in_failing_call(made, finding);
  if (!puts || same_function(made.at, sibling.at)) return std::nullopt;
  const std::string device = spoken_device(pair.wanted.device);
  return Explanation{
      cause_at(made.at, pair.odd,
               "This line makes it, and puts it, on " + spoken_device(pair.odd.device) + ", beside what " +
                   short_place(sibling.at) + " had moved to " + device + " by then: all tensors that were there, `" +
                   sibling.text + "` among them."),
      Fix{made.at.file, made.at.line, "Make it on " + device + " here; or call this before the others are moved."}};
}

// `return self.net(x.to(self.device))`, in a function that has returned: it moves what it computes with, and hands on
// nothing that could have been moved beside it. `parts.append(x.to(device))` and `Batch(x.to(device))` keep it.
bool moves_for_itself(const Frame& place, const Finding& finding) {
  if (!is_given_away(place) || is_running(place, finding)) return false;
  const std::string_view statement = statement_of(place.statement());
  const std::string call = call_at(place);
  const std::string_view before = statement.substr(0, statement.find(call) - 1);
  const auto begin = std::find_if_not(before.rbegin(), before.rend(), trace::is_word).base();
  const std::string_view callee = before.substr(static_cast<std::size_t>(begin - before.begin()));
  constexpr std::array<std::string_view, 6> kKeep = {"append", "add", "put", "extend", "insert", "tuple"};
  const bool makes_object = callee.empty() || std::isupper(static_cast<unsigned char>(callee.front())) != 0;
  return !makes_object && std::ranges::find(kKeep, callee) == kKeep.end();
}

// `self.count = self.count.to(self.device)`
bool stores_where_told(const Evidence& stayed, const Operand& odd) {
  const Evidence* stored = evidence_of(odd, trace::EvidenceKind::attribute_set_at);
  return stored != nullptr && same_line(stored->at, stayed.at) && calls_move(stayed.at.statement());
}

}  // namespace

std::optional<Explanation> left_out_of_move(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  if (auto given = given_beside_moved(*pair, finding)) return given;
  if (auto returned = returned_beside_moved(*pair, finding)) return returned;
  const Evidence* sibling = place_of(pair->odd, trace::EvidenceKind::sibling_moved, finding);
  if (sibling == nullptr || made_beside_move(pair->odd, *sibling)) return std::nullopt;
  if (is_result_of_holder(pair->odd, finding)) return std::nullopt;
  // What a line has sent to where things are kept, or by a setting of its own, and so left where it was, is not passed
  // over.
  const Evidence* stayed = evidence_of(pair->odd, trace::EvidenceKind::stayed_at);
  if (stayed != nullptr && (moves_to_store(stayed->at) || stores_where_told(*stayed, pair->odd))) return std::nullopt;
  if (auto taken = taken_beside_moved(*sibling, *pair, finding)) return taken;
  if (auto later = put_after_move(*sibling, *pair, finding)) return later;
  if (auto beside = put_beside_moved(*sibling, *pair, finding)) return beside;
  // The same, where a helper function moves the others, one by one.
  const Evidence* put = place_of(pair->odd, trace::EvidenceKind::put_beside_at, finding);
  if (put != nullptr && is_made_in(put->at, pair->odd)) return std::nullopt;
  const Evidence* kept = evidence_of(pair->odd, trace::EvidenceKind::computed_from);
  const std::string left = kept != nullptr ? "`" + kept->text + "`" : mention(pair->odd);
  const std::string device = spoken_device(pair->wanted.device);
  if (const Evidence* passed = place_of(pair->odd, trace::EvidenceKind::passed_over_at, finding)) {
    return handed_back(*passed, *sibling, left, *pair);
  }
  if (const Evidence* listed = place_of(pair->odd, trace::EvidenceKind::names_listed_at, finding)) {
    const Evidence* taken = taken_out_as_it_is(*pair, *listed, finding);
    return taken != nullptr ? taken_out_beside(*taken, *sibling, *pair) : not_listed(*listed, *sibling, *pair);
  }
  if (const Evidence* as_it_is = place_of(pair->odd, trace::EvidenceKind::put_as_it_is_at, finding)) {
    return put_in_other_branch(*as_it_is, *sibling, left, *pair);
  }
  if (const Evidence* unpacked = unpacked_above(*pair, *sibling, finding)) {
    return taken_out_beside(*unpacked, *sibling, *pair);
  }
  const Evidence* rebuilt = place_of(pair->odd, trace::EvidenceKind::rebuilt_at, finding);
  const bool anew = rebuilt != nullptr && same_function(rebuilt->at, sibling->at);
  if (!anew && moves_for_itself(sibling->at, finding)) return std::nullopt;
  const Frame* applied = anew ? nullptr : put != nullptr ? &put->at : applied_at(*sibling, *pair, finding);
  const Frame& place = anew ? rebuilt->at : applied != nullptr ? *applied : sibling->at;
  const bool elsewhere = !same_line(place, sibling->at);
  std::string why = !elsewhere ? std::string("This line moves")
                               : (anew ? "A `" + rebuilt->text + "` is made anew here. "
                                       : std::string("This line applies a function to some of its parts. ")) +
                                     short_place(sibling->at) + " moves";
  why += " `" + sibling->text + "` to " + device + ", and " + left + ", which came with it, is left on " +
         spoken_device(pair->odd.device) + ".";
  return Explanation{cause_at(place, pair->odd, std::move(why)),
                     Fix{place.file, place.line,
                         "Move " + left + " to " + device + " here, too; or move " + mention(pair->odd) + " " +
                             where_used(pair->odd, pair->wanted, finding) + "."}};
}

}  // namespace devsan::report::why
