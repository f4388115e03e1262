// Factories make their tensors on the default device, the CPU unless told otherwise. One that is told which device to
// use did what it was told: then it counts who told it, if that is known, and nobody is blamed where it is not.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "report/frames.h"
#include "report/statement_lines.h"
#include "report/statement_text.h"
#include "report/why/decision.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/words.h"

namespace devsan::report::why {
namespace {

std::string on_which(const Operand& odd, const Frame& made) {
  if (made_like_another(made)) return ", on " + spoken_device(odd.device) + ", as what it is made like";
  return odd.on_cpu() ? ", on the CPU because no device is given"
                      : ", on " + odd.device + ", the default device of that moment, because none is given";
}

Explanation told_from(const Decision& decided, const Pair& pair, const Finding& finding) {
  const LineageStep& origin = asking_step(pair.odd);
  const Frame place = line_of_keyword(decided.at, decided.name);
  RootCause cause = cause_at(place, pair.odd,
                             mention_first(pair.odd) + " begins in " + short_place(origin.at) + ", and is on " +
                                 spoken_device(pair.odd.device) + " " + because_of(decided) + ".");
  return {std::move(cause),
          Fix{place.file, place.line,
              change_of(decided, pair, finding) + "; or make it on " + spoken_device(pair.wanted.device) + " in " +
                  short_place(origin.at) + ", whatever is given."}};
}

// A constructor makes what it keeps for all that will use it. Where these are on several accelerators, no device that
// it is given is right for all of them.
bool is_one_for_all(const LineageStep& origin, const Decision& decided, const Pair& pair) {
  const bool several =
      is_device_of_value(decided.at) || evidence_of(pair.odd, trace::EvidenceKind::model_spread) != nullptr;
  return several && on_accelerator(pair.odd) && on_accelerator(pair.wanted) && makes_object(origin.at) &&
         !decided.name.starts_with("self.");
}

Explanation one_for_all(const Decision& decided, const LineageStep& origin, const Pair& pair) {
  return {cause_at(origin.at, pair.odd,
                   mention_first(pair.odd) + " begins in this line, on `" + decided.name + "`, which is " +
                       pair.odd.device +
                       (is_device_of_value(decided.at) ? ", the device of another value in " : ", as told in ") +
                       short_place(decided.at) + ". What uses it is not all there: what it meets is on " +
                       pair.wanted.device + "."),
          Fix{origin.at.file, origin.at.line,
              "Make each on the device of what uses it, here " + pair.wanted.device +
                  ", instead of one device for all; or move it where it is used."}};
}

// `states = cache.states[layer]`: a part of one tensor, which cannot be on several devices, is taken out for work that
// is on another one. The line that takes an entry out of a list has nothing to add: each of those has a device of its
// own.
const Evidence* part_taken(const Operand& odd, const LineageStep& origin, const Finding& finding) {
  const Evidence* bound = place_of(odd, trace::EvidenceKind::bound_at, finding);
  if (bound == nullptr || same_function(bound->at, origin.at) || !same_function(bound->at, *finding.where)) {
    return nullptr;
  }
  const bool kept = evidence_of(odd, trace::EvidenceKind::held_by_object) != nullptr ||
                    evidence_of(odd, trace::EvidenceKind::held_by_module) != nullptr;
  const auto assigned = split_assignment(bound->at.statement());
  const bool takes = assigned && begins_with_entry(assigned->value) && assigned->value.ends_with(']');
  return takes && !kept && &odd.lineage.front() == &origin ? bound : nullptr;
}

Explanation taken_out_of_one(const Evidence& part, const LineageStep& origin, const Pair& pair) {
  const std::string edit = assigned_after_move(part.at, device_expression(pair.wanted));
  return {cause_at(part.at, pair.odd,
                   "This line takes " + mention(pair.odd) + " out of one tensor, which " + short_place(origin.at) +
                       " makes on " + pair.odd.device + " for all that use it. What it meets here is on " +
                       pair.wanted.device + "."),
          Fix{part.at.file, part.at.line,
              "Move what is taken out" + (edit.empty() ? " to " + pair.wanted.device + "." : ": `" + edit + "`.")}};
}

// An attribute that says a device does not move with a model; what is made on it later meets weights that did, or what
// was computed with them.
const Evidence* left_attribute(const LineageStep& origin, const Pair& pair, const Finding& finding) {
  const Evidence* attribute = attribute_of_constructor(pair.odd, trace::EvidenceKind::device_from, finding);
  const LineageStep* move = newest_move_of(pair.wanted);
  const bool used_later = attribute != nullptr && !is_constructor(origin.at);
  if (!used_later || move == nullptr) return nullptr;
  const bool beside = moves_module(*move) && same_function(origin.at, *finding.where);
  return is_weight(pair.wanted) || beside ? attribute : nullptr;
}

// A script that moves a model is no other object.
bool moves_whole_program(const Frame& place) {
  return place.function.find('.') == std::string::npos;
}

// "height", "width" of `torch.stack([width, height, width, height], dim=1)`: what is joined, each once.
std::set<std::string> joined_names(const Frame& place) {
  std::set<std::string> names;
  const std::string& text = place.statement();
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']', open);
  if (open == text.npos || close == text.npos) return names;
  for (std::size_t begin = open + 1; begin < close;) {
    std::size_t end = begin;
    while (end < close && trace::is_word(text[end])) ++end;
    if (end > begin) names.insert(text.substr(begin, end - begin));
    begin = std::max(end, begin + 1);
    if (end < close && text[end] != ',' && text[end] != ' ') return {};  // an expression
  }
  return names;
}

// Each of several variables was made without a device, and one line puts them together: one move does for all.
const LineageStep* joined_at(const Operand& odd, const Finding& finding) {
  for (const LineageStep& step : odd.lineage) {
    if (!joins_entries(step) || made_in_failing_call(step, finding)) continue;
    const bool here = same_function(step.at, odd.lineage.back().at) && same_function(step.at, *finding.where);
    return here && split_assignment(step.at.statement()) && joined_names(step.at).size() > 1 ? &step : nullptr;
  }
  return nullptr;
}

Explanation moved_when_joined(const LineageStep& join, const Pair& pair, const Finding& finding) {
  const std::string edit = assigned_after_move(join.at, device_at(join.at, pair.wanted, finding));
  return {cause_at(join.at, pair.odd,
                   "This line puts " + mention(pair.odd) + " together of several that were made on " +
                       spoken_device(pair.odd.device) + ", because no device is given."),
          Fix{join.at.file, join.at.line,
              "Move what it gives to " + pair.wanted.device + (edit.empty() ? "" : ": `" + edit + "`") +
                  "; or pass the device where each of them is made."}};
}

bool moved_by_another(const LineageStep& move, const Evidence& attribute) {
  return !moves_whole_program(move.at) && class_of(move.at) != class_of(attribute.at);
}

Explanation made_on_attribute(const Evidence& attribute, const LineageStep& origin, const Pair& pair,
                              const Finding& finding) {
  const LineageStep& move = *newest_move_of(pair.wanted);
  const std::string moved =
      mention_first(pair.wanted) + (is_weight(pair.wanted) ? " was" : " comes from weights that were") + " moved to " +
      spoken_device(pair.wanted.device) + " in " + short_place(move.at) + ", which the attribute does not follow.";
  if (!is_weight(pair.wanted)) {
    return {cause_at(origin.at, pair.odd,
                     mention_first(pair.odd) + " begins in this line on `" + attribute.text + "`, which " +
                         short_place(attribute.at) + " has stored: " + spoken_device(pair.odd.device) + ". " + moved),
            Fix{origin.at.file, origin.at.line,
                "Take the device from what it meets, `" + device_expression(pair.wanted) + "`, instead of `" +
                    attribute.text + "`."}};
  }
  // A method of the object whose attribute it is takes it from there to what another object keeps.
  const Evidence* taken = place_of(pair.odd, trace::EvidenceKind::bound_at, finding);
  const bool between = taken != nullptr && class_of(taken->at) == class_of(attribute.at) &&
                       class_of(taken->at) != class_of(*finding.where) && is_running(taken->at, finding) &&
                       !same_function(taken->at, origin.at) && moved_by_another(move, attribute);
  if (between) {
    return {cause_at(taken->at, pair.odd,
                     "This line takes `" + taken->text + "` as it is, on " + spoken_device(pair.odd.device) + ": " +
                         short_place(origin.at) + " makes it on `" + attribute.text + "`. " + moved),
            Fix{taken->at.file, taken->at.line,
                "Move it to " + pair.wanted.device + " here, before it is given to what works there."}};
  }
  // Another object has moved them, and told the one whose attribute it is nothing.
  if (moved_by_another(move, attribute)) {
    return {
        cause_at(move.at, pair.odd,
                 "This line moves " + mention(pair.wanted) + " to " + spoken_device(pair.wanted.device) + ". `" +
                     attribute.text + "`, which " + short_place(attribute.at) + " has stored beside it, still says " +
                     spoken_device(pair.odd.device) + ": " + mention(pair.odd) + " is made on that in " +
                     short_place(origin.at) + "."),
        Fix{move.at.file, move.at.line,
            "Set the device of the object that keeps these weights here, too; or take the device from a weight in " +
                short_place(origin.at) + "."}};
  }
  // A module's `forward` has what it is given, and its weights, to ask.
  if (own_function(origin.at) == "forward") {
    return {
        cause_at(origin.at, pair.odd,
                 mention_first(pair.odd) + " begins in this line on `" + attribute.text + "`, which " +
                     short_place(attribute.at) + " has stored: " + spoken_device(pair.odd.device) + ". " + moved),
        Fix{origin.at.file, origin.at.line,
            "Take the device from what is given to `forward`, or from a weight, instead of `" + attribute.text + "`."}};
  }
  return {cause_at(attribute.at, pair.odd,
                   mention_first(pair.odd) + " begins in " + short_place(origin.at) + " on `" + attribute.text +
                       "`, which this line stores: " + spoken_device(pair.odd.device) + ". " + moved),
          Fix{origin.at.file, origin.at.line,
              "Take the device from the weights that it meets instead of `" + attribute.text +
                  "`, or store that anew where these are moved."}};
}

// `return self._device`: a property that only hands out what somebody stored.
bool hands_out_attribute(const Frame& property) {
  constexpr std::string_view kReturns = "return self.";
  const std::string_view statement = statement_of(property.statement());
  return statement.starts_with(kReturns) && std::ranges::all_of(statement.substr(kReturns.size()), trace::is_word);
}

// `torch.tensor(weights, device=pipe.device)`: an object that is no tensor says where it is, by a property of its own.
bool is_object_asked(const Decision& decided, const LineageStep& origin, const Finding& finding) {
  const bool path = !decided.name.empty() && std::ranges::all_of(decided.name, trace::is_word);
  return path && decided.standard.empty() && !is_device_argument(decided) && decided.name != "self" &&
         !same_line(decided.at, origin.at) && same_function(origin.at, *finding.where) &&
         call_at(origin.at).find("device=" + decided.name + ".device") != std::string::npos;
}

Explanation made_as_object_says(const Decision& decided, const LineageStep& origin, const Pair& pair,
                                const std::string& device) {
  return {cause_at(origin.at, pair.odd,
                   mention_first(pair.odd) + " begins in this line on `" + decided.name + ".device`, which is " +
                       spoken_device(pair.odd.device) + " at that moment. What it meets is on " +
                       spoken_device(pair.wanted.device) + "."),
          Fix{origin.at.file, origin.at.line,
              "Take the device from what it meets, `" + device + "`, instead of from `" + decided.name + "`."}};
}

// `device=self.device`, which is computed whenever it is asked: the line asks for it.
Explanation made_as_asked(const Evidence& property, const LineageStep& origin, const Pair& pair,
                          const std::string& device) {
  if (hands_out_attribute(property.at)) {
    return {
        cause_at(property.at, pair.odd,
                 mention_first(pair.odd) + " begins in " + short_place(origin.at) + " on `" + property.text +
                     "`. This property hands out an attribute that was stored once: it says " +
                     spoken_device(pair.odd.device) + ", while what it meets is on " +
                     spoken_device(pair.wanted.device) + "."),
        Fix{property.at.file, property.at.line,
            "Return the device of a parameter or buffer, which moves with the object, instead of what was stored."}};
  }
  return {
      cause_at(origin.at, pair.odd,
               mention_first(pair.odd) + " begins in this line on `" + property.text + "`, which is " +
                   spoken_device(pair.odd.device) + " at that moment, as the property in " + short_place(property.at) +
                   " computes it. What it meets is on " + spoken_device(pair.wanted.device) + "."),
      Fix{origin.at.file, origin.at.line,
          "Take the device from what it meets, `" + device + "`, instead of `" + property.text + "`."}};
}

// `torch.arange(n, device=self.device)` in the function that fails, of which nobody knows who stored that attribute
// last: beside weights that are elsewhere, they are what to ask.
bool asks_own_attribute(const LineageStep& origin, const Pair& pair, const Finding& finding) {
  const bool weight =
      is_weight(pair.wanted) || evidence_of(pair.wanted, trace::EvidenceKind::held_by_module) != nullptr;
  constexpr std::string_view kOwn = "device=self.";
  const std::string call = call_at(origin.at);
  const std::size_t at = call.find(kOwn);
  // Beside what came to the function on an accelerator, too: a replica has the attributes of the module it is one of.
  const bool given = on_accelerator(pair.odd) && on_accelerator(pair.wanted);
  if ((!weight && !given) || at == call.npos || !same_function(origin.at, *finding.where)) return false;
  const std::size_t end = call.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at + kOwn.size());
  return end != call.npos && (call[end] == ',' || call[end] == ')');
}

Explanation made_as_attribute_says(const LineageStep& origin, const Pair& pair, const std::string& device) {
  return {cause_at(origin.at, pair.odd,
                   mention_first(pair.odd) + " begins in this line on " + spoken_device(pair.odd.device) +
                       ", which an attribute says. What it meets, " + mention(pair.wanted) + ", is on " +
                       spoken_device(pair.wanted.device) + ", and the attribute was not told."),
          Fix{origin.at.file, origin.at.line,
              "Take the device from what it meets, `" + device + "`, instead of from an attribute."}};
}

// `batch = tokenize(texts)`: a library makes its tensors on the CPU, and the program takes them from there.
Explanation made_by_library(const LineageStep& origin, const Pair& pair, const Finding& finding) {
  const std::string there = spoken_device(pair.wanted.device);
  // What the library gives has this as an entry, and cannot be moved by itself perhaps.
  const bool entry = begins_with_entry(pair.odd.name);
  const std::string edit = entry ? "" : assigned_after_move(origin.at, device_at(origin.at, pair.wanted, finding));
  return {cause_at(origin.at, pair.odd,
                   mention_first(pair.odd) + " begins in this line, which has a library make it on " +
                       spoken_device(pair.odd.device) + ", in " + short_place(origin.within.front()) + "."),
          Fix{origin.at.file, origin.at.line,
              (entry ? "Move what is taken out of it to " : "Move what the library gives to ") + there +
                  (edit.empty() ? "" : ": `" + edit + "`") + "; or tell it the device here, if it takes one."}};
}

// `self.alphas = scheduler.alphas_cumprod`: an object keeps what a library has made, and computes with it later.
std::optional<Explanation> kept_from_library(const LineageStep& origin, const Pair& pair, const Finding& finding) {
  const Evidence* kept = place_of(pair.odd, trace::EvidenceKind::kept_source_at, finding);
  if (kept == nullptr || same_line(kept->at, origin.at)) return std::nullopt;
  const std::string edit = assigned_after_move(kept->at, device_at(kept->at, pair.wanted, finding));
  return Explanation{cause_at(kept->at, pair.odd,
                              mention_first(pair.odd) + " is computed from `" + kept->text +
                                  "`, which is kept here as a library made it, on " + spoken_device(pair.odd.device) +
                                  ", in " + short_place(origin.within.front()) + "."),
                     Fix{kept->at.file, kept->at.line,
                         "Move it to " + spoken_device(pair.wanted.device) + (edit.empty() ? "" : ": `" + edit + "`") +
                             "; or where it is used, in " + short_place(*finding.where) + "."}};
}

// `device = memory.device`, above `torch.zeros(n, device=device)`: of the values at hand it asks another one than what
// it makes this for.
std::optional<Explanation> taken_from_value(const LineageStep& origin, const Pair& pair, const std::string& device,
                                            const Finding& finding) {
  const Evidence* taken = place_of(pair.odd, trace::EvidenceKind::device_taken_at, finding);
  if (taken == nullptr || same_line(taken->at, origin.at)) return std::nullopt;
  return Explanation{
      cause_at(taken->at, pair.odd,
               "This line takes the device from `" + taken->text + "`, which is " + spoken_device(pair.odd.device) +
                   "; " + short_place(origin.at) + " makes " + mention(pair.odd) + " there. What it meets is on " +
                   spoken_device(pair.wanted.device) + "."),
      Fix{taken->at.file, taken->at.line, "Take the device from what it is used with, `" + device + "`."}};
}

// `torch.arange(n, device=self.embed.weight.device)` in the function that fails: where that weight was at that moment
// is where it is kept, as hooks that bring weights over for each call show.
Explanation made_where_weight_is(const LineageStep& origin, const Pair& pair, const std::string& device) {
  return {cause_at(origin.at, pair.odd,
                   mention_first(pair.odd) + " begins in this line, which asks a weight for the device: " +
                       spoken_device(pair.odd.device) + " at that moment. What it meets, " + mention(pair.wanted) +
                       ", is on " + spoken_device(pair.wanted.device) + "."),
          Fix{origin.at.file, origin.at.line,
              "Take the device from what it is used with, `" + device + "`, instead of from a weight."}};
}

// `total.add_(x.t() @ x)`, with one total for what is computed on several accelerators.
bool takes_in_from_several(const Pair& pair, const Finding& finding) {
  return is_written_to(pair.odd, finding) && on_accelerator(pair.odd) && on_accelerator(pair.wanted) &&
         pair.odd.lineage.front().how == trace::How::created;
}

Explanation one_total_for_several(const LineageStep& origin, const Pair& pair) {
  return {cause_at(origin.at, pair.odd,
                   mention_first(pair.odd) + " begins in this line, on " + pair.odd.device + ". It " +
                       takes_in_place(pair.wanted)),
          Fix{origin.at.file, origin.at.line,
              "Keep one for each accelerator, and put them together at the end; or bring what it takes in to it, with "
              "`" +
                  move_call(pair.wanted, pair.odd) + "`."}};
}

// Weights whose data is kept elsewhere, or was not loaded yet, are on `meta`, and so is what is computed with them.
Explanation without_data(const Pair& pair, const Finding& finding) {
  return {std::nullopt,
          Fix{finding.where->file, finding.where->line,
              mention_first(pair.odd) + " is on `meta`, where tensors have no data. Weights are there while they are " +
                  "offloaded, or before they are loaded: call the module that owns them, so that its hooks bring the " +
                  "data, instead of using its weights; or load them first."}};
}

// A generator makes numbers on its own device alone: a factory that is given one cannot be told another device.
bool is_drawn(const Frame& place) {
  return call_at(place).find("generator=") != std::string::npos;
}

Explanation drawn_elsewhere(const LineageStep& origin, const Pair& pair, const std::string& device) {
  const std::string call = call_at(origin.at);
  return {cause_at(origin.at, pair.odd,
                   mention_first(pair.odd) + " begins in this line, on " + spoken_device(pair.odd.device) +
                       ", where the generator is that it is drawn from."),
          Fix{origin.at.file, origin.at.line,
              "Move what is drawn: `" + call + ".to(" + device + ")`; or make the generator on " +
                  spoken_device(pair.wanted.device) + ". Numbers of another generator are other ones."}};
}

// "to(self.device)", behind the call that made it in the same line. It left the value where it was: a move that does
// something is a step of the history.
std::string move_behind(const Frame& place) {
  const std::string_view rest = behind_call(place);
  const std::size_t begin = rest.find(".to(");
  const std::size_t end = begin == rest.npos ? rest.npos : rest.find(')', begin);
  const std::string_view call = end == rest.npos ? std::string_view() : rest.substr(begin + 1, end - begin);
  return call.find("device") == call.npos ? "" : std::string(call);
}

Explanation left_by_move(const LineageStep& origin, const std::string& move, const Pair& pair) {
  const std::string here = spoken_device(pair.odd.device);
  return {cause_at(origin.at, pair.odd,
                   mention_first(pair.odd) + " begins in this line on " + here + ", and `" + move +
                       "` leaves it there: what that names is on " + here + ", too, at that moment."),
          Fix{origin.at.file, origin.at.line, "Name " + spoken_device(pair.wanted.device) + " in `" + move + "`."}};
}

// `self.register_buffer("queue", torch.randn(n, d))` makes it where it should: what is missing is a move of the module.
std::optional<Explanation> made_as_weight(const LineageStep& origin, const Pair& pair, const Finding& finding) {
  const Frame& call = made_by_call(origin);
  // A constructor that works with what is elsewhere already could make its own there.
  const auto knows = [&](const LineageStep& step) {
    return step.device == pair.wanted.device && same_function(step.at, origin.at);
  };
  if (!registers_weight(origin.at) || !pair.odd.on_cpu() || std::ranges::any_of(pair.wanted.lineage, knows))
    return std::nullopt;
  if (&call == &origin.at || !is_changeable(call, finding)) return std::nullopt;
  const Fix fix = move_module_where_made(call, pair.wanted.device);
  // As module_not_moved tells of the weight itself.
  const std::string of = mention_first(pair.odd) + " is computed from a parameter or buffer that ";
  if (call.function == "<module>") {
    return Explanation{cause_at(origin.at, pair.odd,
                                of + "begins in this line, on the CPU. " + short_place(call) +
                                    " makes its module, and nothing has moved that since."),
                       fix};
  }
  return Explanation{
      cause_at(call, pair.odd,
               of + short_place(origin.at) +
                   " makes. Its module is made in this line, on the CPU, and nothing has moved it since."),
      fix};
}

// `nn.CrossEntropyLoss(weight=weights)`: a module keeps as its own what a helper made, and is never moved.
std::optional<Explanation> given_to_module(const LineageStep& origin, const Pair& pair, const Finding& finding) {
  const Evidence* given = place_of(pair.odd, trace::EvidenceKind::weight_given_at, finding);
  if (given == nullptr || !pair.odd.on_cpu() || is_running(origin.at, finding)) return std::nullopt;
  if (same_function(given->at, origin.at)) return std::nullopt;
  return Explanation{
      cause_at(given->at, pair.odd,
               mention_first(pair.odd) + " is given to a `" + type_of_path(given->text) + "` here, as `" +
                   std::string(attribute_of_path(given->text)) + "`, on the CPU, where " + short_place(origin.at) +
                   " made it. Nothing has moved it, or the module, since."),
      Fix{given->at.file, given->at.line,
          "Give it on " + pair.wanted.device + ", or move the module that is made here: `.to('" + pair.wanted.device +
              "')`."}};
}

}  // namespace

std::optional<Explanation> made_without_device(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || newest_move_of(pair->odd) != nullptr) return std::nullopt;
  const LineageStep* origin = arrival_of(pair->odd);
  if (origin == nullptr || origin->how != trace::How::created || !is_changeable(origin->at, finding)) {
    return std::nullopt;
  }
  if (pair->odd.device == "meta") return without_data(*pair, finding);
  const auto decided = decision_of(pair->odd, trace::EvidenceKind::device_from, finding);
  if (!origin->within.empty()) {
    if (decided) return told_from(*decided, *pair, finding);
    auto kept = kept_from_library(*origin, *pair, finding);
    return kept ? std::move(kept) : made_by_library(*origin, *pair, finding);
  }
  const std::string move = move_behind(origin->at);
  if (!move.empty() && decided && !decided->standard.empty()) return told_from(*decided, *pair, finding);
  if (!move.empty()) return left_by_move(*origin, move, *pair);
  if (auto given = given_to_module(*origin, *pair, finding)) return given;
  if (auto weight = made_as_weight(*origin, *pair, finding)) return weight;
  const bool named = names_device(origin->at);
  const std::string device = device_at(origin->at, pair->wanted, finding);
  if (const LineageStep* join = named ? nullptr : joined_at(pair->odd, finding)) {
    return moved_when_joined(*join, *pair, finding);
  }
  if (is_drawn(origin->at)) return drawn_elsewhere(*origin, *pair, device);
  const std::string edit = named ? "" : with_argument(call_at(origin->at), "device=" + device);
  std::string text = named          ? "Make it on " + spoken_device(pair->wanted.device)
                     : edit.empty() ? "Pass `device=" + device + "`"
                                    : "Pass the device: `" + edit + "`";
  if (!made_in_failing_call(*origin, finding)) {
    text += ", or move it " + where_used(pair->odd, pair->wanted, finding);
  }
  Fix fix{origin->at.file, origin->at.line, text + "."};
  const Evidence* attribute = left_attribute(*origin, *pair, finding);
  if (attribute != nullptr && !(decided && is_entry(*decided))) {
    return made_on_attribute(*attribute, *origin, *pair, finding);
  }
  if (decided && is_one_for_all(*origin, *decided, *pair)) {
    if (const Evidence* part = part_taken(pair->odd, *origin, finding)) return taken_out_of_one(*part, *origin, *pair);
    return one_for_all(*decided, *origin, *pair);
  }
  if (decided && is_object_asked(*decided, *origin, finding))
    return made_as_object_says(*decided, *origin, *pair, device);
  if (decided) return told_from(*decided, *pair, finding);
  const Evidence* property = place_of(pair->odd, trace::EvidenceKind::device_property_at, finding);
  if (named && property != nullptr) return made_as_asked(*property, *origin, *pair, device);
  if (named && asks_own_attribute(*origin, *pair, finding)) return made_as_attribute_says(*origin, *pair, device);
  if (auto taken = named ? taken_from_value(*origin, *pair, device, finding) : std::nullopt) return taken;
  if (named && asks_weight(origin->at) && same_function(origin->at, *finding.where))
    return made_where_weight_is(*origin, *pair, device);
  if (named && takes_in_from_several(*pair, finding)) return one_total_for_several(*origin, *pair);
  if (named && !names_device_itself(origin->at)) return Explanation{std::nullopt, std::move(fix)};
  RootCause cause =
      cause_at(origin->at, pair->odd,
               mention_first(pair->odd) + " begins in this line" +
                   (named ? ", on " + spoken_device(pair->odd.device) : on_which(pair->odd, origin->at)) + ".");
  return Explanation{std::move(cause), std::move(fix)};
}

}  // namespace devsan::report::why
