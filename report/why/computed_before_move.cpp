// A value was computed from a parameter or buffer, or made like one, while its module was still elsewhere; the module
// was moved afterwards, and what had been computed stayed.
#include <algorithm>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/function_names.h"

namespace devsan::report::why {
namespace {

// `self.kernel = product(self.g, self.v)`: what another function computed is kept as a plain attribute.
std::optional<Explanation> kept_as_attribute(const Pair& pair, const Evidence& computed, const Evidence& moved,
                                             const std::string& source, const Finding& finding) {
  const Evidence* held = evidence_of(pair.odd, trace::EvidenceKind::held_by_module);
  const Evidence* stored = held != nullptr ? store_of(pair.odd, *held, finding) : nullptr;
  if (stored == nullptr || same_function(stored->at, computed.at) || same_function(stored->at, *finding.where)) {
    return std::nullopt;
  }
  const std::string edit = registered_as_buffer(stored->at, attribute_of_path(held->text));
  return Explanation{
      cause_at(stored->at, pair.odd,
               mention_first(pair.odd) + " is a plain attribute of the module `" + type_of_path(held->text) +
                   "`, computed in " + short_place(computed.at) + " from " + source + ", which is on " +
                   spoken_device(pair.odd.device) + " at that time. " + short_place(moved.at) + " moves it to " +
                   moved.text + " later, and the attribute stays."),
      Fix{stored->at.file, stored->at.line,
          (edit.empty() ? "Register it with `register_buffer()`" : "Register it: `" + edit + "`") +
              ", so that it moves, too; or compute it after the move, or where it is used."}};
}

// A cache that finds it once more in a later call has its entry from an earlier one: that is another mistake.
bool is_cached(const Operand& odd) {
  return std::ranges::any_of(odd.lineage, [&](const LineageStep& step) { return is_cached_at(odd, step.at); });
}

// The last line of the function that computed it: `size = weight.abs()` and, under it, `masks[name] = size.gt(limit)`.
// Or, where that only serves it, the line that calls it: `self.state[p] = torch.zeros_like(norm_of(p))`.
const Frame& kept_from(const Operand& odd, const Frame& computed, const Finding& finding) {
  const LineageStep& newest = odd.lineage.front();
  const bool later = newest.how == trace::How::derived && same_function(newest.at, computed);
  if (later && newest.at.line > computed.line) return newest.at;
  const std::string call = std::string(trace::own_name(computed.function)) + "(";
  const auto calls = [&](const LineageStep& step) {
    return !same_line(step.at, *finding.where) && !same_function(step.at, computed) &&
           find_name(step.at.statement(), call) != std::string_view::npos;
  };
  const auto computing =
      std::ranges::find_if(odd.lineage, [&](const LineageStep& step) { return same_line(step.at, computed); });
  const auto caller = std::find_if(odd.lineage.begin(), computing, calls);
  return caller != computing ? caller->at : computed;
}

// `t = torch.cat(messages)`, in the failing function: it joins entries that were computed one by one, and whichever of
// them is from before the move comes through this line.
const LineageStep* joined_for_use(const Operand& odd, const Evidence& computed, const Finding& finding) {
  const LineageStep* before = newest_before(odd, finding);
  if (before == nullptr || !joins_entries(*before)) return nullptr;
  const bool here = same_function(before->at, *finding.where) && !same_function(computed.at, before->at);
  return here && before->at.statement().find(" = ") != std::string::npos ? before : nullptr;
}

Explanation joined_as_kept(const LineageStep& join, const Evidence& computed, const Evidence& moved, const Pair& pair,
                           const Finding& finding) {
  return {cause_at(join.at, pair.odd,
                   "This line joins what was computed in " + short_place(computed.at) + ", on " +
                       spoken_device(pair.odd.device) + ", and kept. " + short_place(moved.at) +
                       " has moved what that was computed from to " + moved.text + " since."),
          Fix{join.at.file, join.at.line,
              "Move what is joined here: `.to(" + device_at(join.at, pair.wanted, finding) +
                  ")`; or compute it anew after the move."}};
}

// `trainer.prepare()`, above `model.to(device)`: the function that computes it does as it is called.
Explanation called_too_early(const Evidence& call, const Evidence& computed, const Evidence& moved, const Pair& pair) {
  return {cause_at(call.at, pair.odd,
                   "This line calls `" + call.text + "`, which computes " + mention(pair.odd) + " in " +
                       short_place(computed.at) + " from a weight that is on " + spoken_device(pair.odd.device) +
                       " then. " + short_place(moved.at) + ", further down, moves that to " + moved.text + "."),
          Fix{call.at.file, call.at.line, "Call it behind " + short_place(moved.at) + "."}};
}

}  // namespace

std::optional<Explanation> computed_before_move(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const Evidence* computed = place_of(pair->odd, trace::EvidenceKind::computed_before_move, finding);
  const Evidence* moved = evidence_of(pair->odd, trace::EvidenceKind::source_moved_at);
  if (computed == nullptr || moved == nullptr || is_running(computed->at, finding)) return std::nullopt;
  // What an optimizer computes when it is made: the line that has it made counts, which may be another one.
  if (evidence_of(pair->odd, trace::EvidenceKind::optimizer_state) != nullptr) return std::nullopt;
  if (pair->odd.lineage.empty() || is_cached(pair->odd)) return std::nullopt;
  const Frame& place = kept_from(pair->odd, computed->at, finding);
  const std::string source = computed->text.empty() ? "a weight or buffer of a module" : "`" + computed->text + "`";
  if (auto kept = kept_as_attribute(*pair, *computed, *moved, source, finding)) return kept;
  if (const Evidence* call = called_before_move(pair->odd, finding)) {
    return called_too_early(*call, *computed, *moved, *pair);
  }
  if (const LineageStep* join = joined_for_use(pair->odd, *computed, finding)) {
    return joined_as_kept(*join, *computed, *moved, *pair, finding);
  }
  std::string why = mention_first(pair->odd) + " is computed here from " + source + ", which is on " +
                    spoken_device(pair->odd.device) + " at this time. " + short_place(moved->at) + " moves it to " +
                    moved->text + " later, and what was computed stays.";
  return Explanation{cause_at(place, pair->odd, std::move(why)),
                     Fix{place.file, place.line,
                         "Compute it after the move, or where it is used; or move it there: `" +
                             move_call(pair->odd, pair->wanted) + "`, in " + short_place(*finding.where) + "."}};
}

}  // namespace devsan::report::why
