// Two operands began as one value; one of them was moved afterwards, and the other was kept from before the move:
// shadow weights of an EMA, a target network, an optimizer's copy of the parameters, the unmoved tensor under a second
// name.
#include <algorithm>
#include <array>
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
#include "trace/odd_operand.h"
#include "trace/words.h"

namespace devsan::report::why {
namespace {

bool is_same_step(const LineageStep& one, const LineageStep& other) {
  const bool same_call = same_line(one.at, other.at) && one.at.column == other.at.column &&
                         one.at.function == other.at.function && std::ranges::equal(one.calls, other.calls, same_line);
  return same_call && same_line(one.innermost, other.innermost) && one.op == other.op && one.how == other.how &&
         one.device == other.device;
}

// How many of the oldest steps both have gone through.
std::size_t shared_steps(const Operand& one, const Operand& other) {
  const auto end = std::ranges::mismatch(one.lineage.rbegin(), one.lineage.rend(), other.lineage.rbegin(),
                                         other.lineage.rend(), is_same_step);
  return static_cast<std::size_t>(end.in1 - one.lineage.rbegin());
}

// The copy that took it to another device after the shared part.
const LineageStep* move_after(const Operand& operand, std::size_t shared) {
  for (std::size_t i = operand.lineage.size() - shared; i-- > 0;) {
    if (operand.lineage[i].how == trace::How::moved) return &operand.lineage[i];
  }
  return nullptr;
}

// What a layer computes is no copy of its weights, which another layer, made by the same line, may have left.
bool is_computed_by_layer(const LineageStep& step) {
  constexpr std::array<std::string_view, 12> kLayers = {"linear", "matmul",  "mm",          "addmm",
                                                        "bmm",    "baddbmm", "convolution", "conv1d",
                                                        "conv2d", "conv3d",  "embedding",   "mv"};
  return std::ranges::find(kLayers, trace::operator_base_name(step.op)) != kLayers.end();
}

bool takes_copy(const LineageStep& step) {
  constexpr std::array<std::string_view, 7> kCopies = {"clone", "detach",     "to",          "_to_copy",
                                                       "copy_", "contiguous", "storage_copy"};
  return std::ranges::find(kCopies, trace::operator_base_name(step.op)) != kCopies.end();
}

// Whether it is another value than the one that both began as: `weight.square() > limit`.
bool is_computed(const Operand& odd, std::size_t shared) {
  return !std::all_of(odd.lineage.begin(), odd.lineage.end() - static_cast<std::ptrdiff_t>(shared), takes_copy);
}

// A library keeps what it has computed of a model, as predictions of a Gaussian process, and the model moves.
std::optional<Explanation> result_in_library(const Pair& pair, const LineageStep& move, const Finding& finding) {
  const LineageStep& newest = pair.odd.lineage.front();
  const bool kept = !is_changeable(newest.at, finding) && !made_in_failing_call(newest, finding);
  if (!kept || !moves_module(move) || !is_changeable(move.at, finding)) return std::nullopt;
  return Explanation{
      cause_at(move.at, pair.odd,
               "This line moves what " + mention(pair.odd) + " was computed from to " + pair.wanted.device + ". " +
                   short_place(newest.at) + " had computed that before, on " + spoken_device(pair.odd.device) +
                   ", and it was kept."),
      Fix{move.at.file, move.at.line,
          "Move it before anything is computed with it; or have the library forget what it keeps of it, after this "
          "line."}};
}

// A copy taken before the original moved on: the line that took it.
std::optional<Explanation> copy_left_behind(const Finding& finding, const Pair& pair) {
  const std::size_t shared = shared_steps(pair.odd, pair.wanted);
  if (shared == 0 || shared == pair.odd.lineage.size()) return std::nullopt;
  const LineageStep* move = move_after(pair.wanted, shared);
  const LineageStep& taken = pair.odd.lineage[pair.odd.lineage.size() - shared - 1];
  if (move == nullptr || move_after(pair.odd, shared) != nullptr || !is_changeable(taken.at, finding)) {
    return std::nullopt;
  }
  if (made_in_failing_call(taken, finding) || is_computed_by_layer(taken) || begins_value(taken)) return std::nullopt;
  const bool computed = is_computed(pair.odd, shared);
  if (computed && evidence_of(pair.odd, trace::EvidenceKind::computed_before_move) != nullptr) return std::nullopt;
  const bool results = computed && is_computed(pair.wanted, shared);
  // Each is a result of what the one value was then: no copy was taken.
  if (results && !takes_copy(taken)) return result_in_library(pair, *move, finding);
  // What an object keeps of something that it has computed is a result of then, and no copy.
  const bool kept = evidence_of(pair.odd, trace::EvidenceKind::held_by_object) != nullptr;
  if (results && kept && !is_weight(pair.wanted)) return std::nullopt;
  // That line moves a part of what holds them both, and leaves this one.
  const Evidence* beside = place_of(pair.odd, trace::EvidenceKind::sibling_moved, finding);
  if (beside != nullptr && same_line(beside->at, move->at)) return std::nullopt;
  const bool like = trace::operator_base_name(taken.op).ends_with("_like");
  const std::string takes = !taken.within.empty()
                                ? "This line has a library take a copy, in " + short_place(taken.within.front()) + ","
                            : like ? "This line makes it like another value,"
                                   : "This line takes a copy";
  RootCause cause =
      cause_at(taken.at, pair.odd,
               takes + " while the value is still on " + spoken_device(pair.odd.device) + ". What it was " +
                   (like ? "made like" : "taken from") + " moves to " + pair.wanted.device + " later, in " +
                   short_place(move->at) + "; " + (like ? "this" : "the copy") + " stays behind.");
  return Explanation{std::move(cause), Fix{taken.at.file, taken.at.line,
                                           (like ? "Make it after the move in " : "Take the copy after the move in ") +
                                               short_place(move->at) +
                                               ", or move it along, with `.to()`, when that line moves the original."}};
}

// "labels_cuda" of `x_cuda, labels_cuda = x.to(device), labels.to(device)`; empty where no name says that it is the
// copy.
std::string_view accelerator_name(const Frame& copy, std::string_view original) {
  std::string_view targets = statement_of(copy.statement());
  targets = targets.substr(0, std::min(targets.find(" = "), targets.size()));
  while (!targets.empty()) {
    const auto end = std::ranges::find_if_not(targets, trace::is_word);
    const auto length = static_cast<std::size_t>(end - targets.begin());
    if (says_accelerator(targets.substr(0, length), original)) return targets.substr(0, length);
    targets.remove_prefix(std::min(length + 1, targets.size()));
  }
  return {};
}

// The failing line, in the function that keeps both and names the copy for the accelerator, takes the one for the host.
std::optional<Explanation> wrong_one_taken(const Evidence& copy, const Pair& pair, const Finding& finding) {
  if (copy.kind != trace::EvidenceKind::copied_away || !same_function(copy.at, *finding.where)) return std::nullopt;
  const std::string name(accelerator_name(copy.at, pair.odd.name));
  if (name.empty() || find_name(finding.where->statement(), pair.odd.name) == std::string_view::npos)
    return std::nullopt;
  const std::string original = "`" + pair.odd.name + "`";
  return Explanation{
      cause_at(*finding.where, pair.odd,
               "This line takes " + original + ", which is on " + spoken_device(pair.odd.device) + ". `" + name +
                   "` is its copy on " + copy.text + ", made in " + short_place(copy.at) + "."),
      Fix{finding.where->file, finding.where->line, "Take `" + name + "` instead of " + original + " here."}};
}

// The call, in the function that made the copy under another name, that gives the old one.
std::optional<Explanation> old_name_given(const Evidence& copy, const Pair& pair, const Finding& finding) {
  const auto assigned = split_assignment(copy.at.statement());
  if (copy.kind != trace::EvidenceKind::copied_away || !assigned) return std::nullopt;
  const std::string name(assigned->target);
  const auto given = std::ranges::find_if(pair.odd.evidence, [&](const Evidence& one) {
    return one.kind == trace::EvidenceKind::given_at && is_changeable(one.at, finding) &&
           same_function(one.at, copy.at) && one.text != name;
  });
  if (given == pair.odd.evidence.end()) return std::nullopt;
  const Frame place = line_of_argument(given->at, given->text);
  return Explanation{
      cause_at(place, pair.odd,
               "This call gives `" + given->text + "`, which is on " + spoken_device(pair.odd.device) +
                   ". The copy on " + copy.text + " is `" + name + "`, made in " + short_place(copy.at) + "."),
      Fix{place.file, place.line, "Give `" + name + "` instead of `" + given->text + "`."}};
}

// `interpolate(u, self._matrix)`: a call gives the plain attribute that a buffer was registered from.
std::optional<Explanation> old_attribute_given(const Evidence& copy, const Pair& pair, const Finding& finding) {
  const auto given = std::ranges::find_if(pair.odd.evidence, [&](const Evidence& one) {
    return one.kind == trace::EvidenceKind::given_at && is_changeable(one.at, finding) &&
           one.text.starts_with("self.") && !same_line(one.at, copy.at);
  });
  if (given == pair.odd.evidence.end()) return std::nullopt;
  const Frame place = line_of_argument(given->at, given->text);
  return Explanation{cause_at(place, pair.odd,
                              "This call gives `" + given->text +
                                  "`, the tensor that a parameter or buffer of the "
                                  "module was made of. " +
                                  short_place(copy.at) + " has moved that to " + copy.text +
                                  ", as a new tensor, and this one stays on " + spoken_device(pair.odd.device) + "."),
                     Fix{place.file, place.line,
                         "Give the parameter or buffer instead of `" + given->text + "`, by its registered name."}};
}

// The same where a helper made the copy, and the function that asked for it hands on what it was made from.
std::optional<Explanation> old_one_handed_on(const Evidence& copy, const Pair& pair, const Finding& finding) {
  constexpr std::string_view kFor = " for ";
  const Evidence* handed = place_of(pair.odd, trace::EvidenceKind::handed_on_at, finding);
  const std::size_t middle = handed != nullptr ? handed->text.find(kFor) : std::string::npos;
  if (middle == std::string::npos) return std::nullopt;
  const std::string given = "`" + handed->text.substr(0, middle) + "`";
  const std::string made = "`" + handed->text.substr(middle + kFor.size()) + "`";
  return Explanation{cause_at(handed->at, pair.odd,
                              "This call hands on " + given + ", from which " + mention(pair.odd) + " comes, on " +
                                  spoken_device(pair.odd.device) + ". What " + short_place(copy.at) +
                                  " copied of it to " + copy.text + " is in " + made + "."),
                     Fix{handed->at.file, handed->at.line, "Hand on " + made + " instead of " + given + "."}};
}

// `row = table[:, :n].to(device)`: what is copied is a part, and stands for nothing else.
bool copies_a_part(const Frame& copy) {
  const std::string call = call_at(copy);
  const std::size_t open = call.find('[');
  const std::size_t close = call.find(']');
  if (open == call.npos || close == call.npos || close > call.find('(')) return false;
  return std::string_view(call).substr(open, close - open).find_first_of(":,") != std::string_view::npos;
}

// Whether the copy can have reached what failed: it was made by a function that still runs, or the other operand comes
// from it. A helper that has copied its argument for its own use alone, and has returned, has left nothing behind.
bool is_within_reach(const Frame& copy, const Pair& pair, const Finding& finding) {
  const auto moved_there = [&](const LineageStep& step) {
    return step.how == trace::How::moved && same_line(step.at, copy);
  };
  const bool stays = copy.function == "<module>" || is_running(copy, finding);  // a global variable may have it
  return stays || std::ranges::any_of(pair.wanted.lineage, moved_there);
}

// Two names: one means the tensor before the move, the other the copy that the move made.
std::optional<Explanation> name_left_behind(const Finding& finding, const Pair& pair) {
  const Evidence* itself = place_of(pair.odd, trace::EvidenceKind::copied_away, finding);
  const Evidence* copy =
      itself != nullptr ? itself : place_of(pair.odd, trace::EvidenceKind::moved_with_module, finding);
  if (copy == nullptr || copy->text != pair.wanted.device || is_given_away(copy->at) || copies_a_part(copy->at)) {
    return std::nullopt;
  }
  // An attribute that stands for a parameter or buffer, too: its module's move made the copy.
  if (place_of(pair.odd, trace::EvidenceKind::attribute_set_at, finding) != nullptr &&
      evidence_of(pair.odd, trace::EvidenceKind::held_by_module) != nullptr) {
    return std::nullopt;
  }
  // `optimizer.load_state_dict(state)` copies what it is given into its own.
  if (copy->at.statement().find("load_state_dict(") != std::string::npos) return std::nullopt;
  if (auto given = itself == nullptr ? old_attribute_given(*copy, pair, finding) : std::nullopt) return given;
  const Evidence* bound = place_of(pair.odd, trace::EvidenceKind::bound_at, finding);
  if (auto taken = wrong_one_taken(*copy, pair, finding)) return taken;
  if (auto given = old_name_given(*copy, pair, finding)) return given;
  if (auto handed = itself != nullptr ? old_one_handed_on(*copy, pair, finding) : std::nullopt) return handed;
  if (copy == itself && !is_within_reach(copy->at, pair, finding)) return std::nullopt;
  const Frame& place = bound != nullptr && same_function(bound->at, copy->at) ? bound->at : copy->at;
  const std::string name = mention(pair.odd);
  RootCause cause = cause_at(place, pair.odd,
                             (&place == &copy->at ? "This line copies " + name + " to " + copy->text
                                                  : name + " is the tensor on " + spoken_device(pair.odd.device) +
                                                        "; " + short_place(copy->at) + " copies it to " + copy->text) +
                                 ", which leaves the tensor itself where it is.");
  // What moves a module is no place to move a tensor in.
  const bool editable = itself != nullptr || &place != &copy->at;
  const std::string edit =
      editable ? assigned_after_move(place, device_at(place, pair.wanted, finding)) : std::string();
  std::string text = "Use the copy made in " + short_place(copy->at) + " instead of " + name;
  if (!edit.empty()) text += ", or move this one, too: `" + edit + "`";
  return Explanation{std::move(cause), Fix{place.file, place.line, text + "."}};
}

}  // namespace

std::optional<Explanation> left_behind(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  if (auto copy = copy_left_behind(finding, *pair)) return copy;
  return name_left_behind(finding, *pair);
}

}  // namespace devsan::report::why
