// A value made with the right device for one call, and kept: in an attribute, a dictionary, a global. Later calls,
// after the model or the data has moved, get the old one.
#include <algorithm>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/decision.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/function_names.h"
#include "trace/words.h"

namespace devsan::report::why {
namespace {

// In the failing function an earlier call took it from what was made elsewhere: `self.weight.original =
// weight.clone()`.
bool is_taken_from_weight(const LineageStep& stored, const LineageStep& arrival, const Finding& finding) {
  return stored.how == trace::How::derived && same_function(stored.at, *finding.where) &&
         !same_function(arrival.at, *finding.where);
}

// A cache was filled in this line with what was computed from something made elsewhere, which may be on another device
// by the next call.
bool is_memo(const Operand& odd, const LineageStep& stored, const LineageStep& arrival) {
  return stored.how == trace::How::derived && !same_function(stored.at, arrival.at) && is_cached_at(odd, stored.at);
}

// `batch = memory.sample(4)` in a function that still runs, where `sample` returns what it computes: a line that begins
// with `return` gives it to nobody but its caller.
bool was_just_returned(const Operand& odd, const LineageStep& stored, const Finding& finding) {
  const std::string called = std::string(trace::own_name(stored.at.function)) + "(";
  if (!statement_of(stored.at.statement()).starts_with("return ") || is_running(stored.at, finding)) return false;
  return std::ranges::any_of(odd.evidence, [&](const Evidence& one) {
    return one.kind == trace::EvidenceKind::bound_at && is_running(one.at, finding) &&
           one.at.statement().find(called) != std::string::npos;
  });
}

// A variable of a function that still runs got it from a call in the line that its making was called from; or a
// function was given it by a call in that line.
bool was_just_made(const Operand& odd, const LineageStep& arrival, const Finding& finding) {
  const auto comes_from_call = [&](const Evidence& one) {
    const bool known = one.kind == trace::EvidenceKind::bound_at || one.kind == trace::EvidenceKind::given_at;
    return known && is_running(one.at, finding) &&
           std::ranges::any_of(arrival.calls, [&](const Frame& call) { return same_line(call, one.at); });
  };
  return std::ranges::any_of(odd.evidence, comes_from_call);
}

// "args[1]": what a running function was given, and has no name for.
bool is_nameless_argument(const Operand& operand) {
  return operand.name.starts_with("args[") || operand.name.starts_with("kwargs[");
}

// Stored by the failing function, as a cache is; what another method of a module stores is one of its attributes.
bool is_kept_by_failing_function(const Operand& operand, const Finding& finding) {
  const Evidence* held = evidence_of(operand, trace::EvidenceKind::held_by_module);
  const Evidence* stored = held != nullptr ? store_of(operand, *held, finding) : nullptr;
  return stored != nullptr && same_function(stored->at, *finding.where);
}

bool is_kept(const Operand& operand, const Finding& finding) {
  if (operand.name.ends_with(".grad")) return false;  // a backward has made it, of this call or an earlier one
  const bool entry = operand.name.find('[') != std::string::npos || operand.name.find('.') != std::string::npos;
  if (evidence_of(operand, trace::EvidenceKind::held_by_object) != nullptr) return true;
  if (is_kept_by_failing_function(operand, finding)) return true;
  if (evidence_of(operand, trace::EvidenceKind::held_by_global) != nullptr) return true;
  return entry && !is_nameless_argument(operand) &&
         (operand.is == trace::NameKind::attribute || operand.is == trace::NameKind::local);
}

// `for base in self.templates:`, where a method begins with `if self.templates is not None: return`.
bool is_taken_from_guarded(const Operand& odd, const Finding& finding) {
  constexpr std::string_view kSelf = "self.";
  const Evidence* guard = place_of(odd, trace::EvidenceKind::cache_guard_at, finding);
  const Evidence* bound = place_of(odd, trace::EvidenceKind::bound_at, finding);
  if (guard == nullptr || bound == nullptr || is_running(guard->at, finding)) return false;
  const std::string& taken = bound->at.statement();
  for (std::size_t at = taken.find(kSelf); at != taken.npos; at = taken.find(kSelf, at + 1)) {
    std::size_t end = at + kSelf.size();
    while (end < taken.size() && trace::is_word(taken[end])) ++end;
    const std::string attribute = taken.substr(at, end - at);
    const bool asked = find_name(guard->text, attribute) != std::string_view::npos;
    if (asked && taken[end] != '(') return true;
  }
  return false;
}

// `cos, sin = (t[:n] for t in self.tables)`, of a `self.tables` that the newest line which made it stores.
bool is_taken_from_stored(const Operand& odd, const Finding& finding) {
  const LineageStep* stored = newest_before(odd, finding);
  const Evidence* bound = place_of(odd, trace::EvidenceKind::bound_at, finding);
  if (stored == nullptr || bound == nullptr || is_running(stored->at, finding)) return false;
  const auto assigned = split_assignment(stored->at.statement());
  return assigned && assigned->target.starts_with("self.") &&
         find_name(bound->at.statement(), assigned->target) != std::string_view::npos;
}

// A function that has handed it back to one which still runs asked for its move on the way, in vain: that is the
// mistake.
bool was_to_move_since(const Operand& odd, const Finding& finding) {
  const Evidence* stayed = place_of(odd, trace::EvidenceKind::stayed_at, finding);
  if (stayed == nullptr || is_running(stayed->at, finding)) return false;
  return std::ranges::any_of(odd.evidence, [&](const Evidence& one) {
    return one.kind == trace::EvidenceKind::handed_back_at && same_function(one.at, stayed->at);
  });
}

// What decides that an attribute is used once more; null where nothing is known to keep it as one.
const Evidence* guard_of(const Operand& odd, const Finding& finding) {
  const bool attribute = evidence_of(odd, trace::EvidenceKind::held_by_module) != nullptr ||
                         evidence_of(odd, trace::EvidenceKind::held_by_object) != nullptr ||
                         is_taken_from_guarded(odd, finding) || is_taken_from_stored(odd, finding);
  // Made where a line says so in so many words, it would be there after any other call, too.
  const LineageStep* arrival = arrival_of(odd);
  const auto decided = decision_of(odd, trace::EvidenceKind::device_from, finding);
  if (!attribute || arrival == nullptr || names_device_itself(arrival->at) || (decided && is_final(*decided))) {
    return nullptr;
  }
  return place_of(odd, trace::EvidenceKind::cache_guard_at, finding);
}

// `self.norm = self.normalise(edges)`: the line that keeps what another function made; null where the value was made
// there, too, or nothing is known of an attribute, or two lines may have kept it.
const Evidence* kept_at(const Operand& odd, const LineageStep& stored, const Finding& finding) {
  const Evidence* held = evidence_of(odd, trace::EvidenceKind::held_by_module);
  if (held == nullptr) held = evidence_of(odd, trace::EvidenceKind::held_by_object);
  const Evidence* set = held != nullptr ? store_of(odd, *held, finding) : nullptr;
  const bool known = set != nullptr && set->kind == trace::EvidenceKind::attribute_set_at;
  return known && !same_function(set->at, stored.at) ? set : nullptr;
}

// What the constructor of a module keeps within an object, it keeps once for all, as it does what it keeps itself.
bool is_kept_for_good(const Operand& odd, const Finding& finding) {
  const Evidence* within = place_of(odd, trace::EvidenceKind::within_module_at, finding);
  return within != nullptr && is_constructor(within->at);
}

// A method makes it for the device that it is told, when a condition says so that does not look at the device.
Explanation used_again(const Evidence& guard, const LineageStep& stored, const Pair& pair) {
  return {cause_at(guard.at, pair.odd,
                   mention_first(pair.odd) + " was made in " + short_place(stored.at) + " in an earlier call, on " +
                       spoken_device(pair.odd.device) +
                       ". This condition, which decides whether that is used once more, does not look at the device: "
                       "what it meets is on " +
                       spoken_device(pair.wanted.device) + "."),
          Fix{guard.at.file, guard.at.line,
              "Let the condition compare the device of what is kept with the one that is asked for, too."}};
}

// `self.grid[i] = make_grid(n).to(x.device)`, in an earlier call: the line that keeps it asks for the device of then.
std::optional<Explanation> put_by_earlier_call(const Pair& pair, const Finding& finding) {
  const Evidence* put = place_of(pair.odd, trace::EvidenceKind::entry_put_at, finding);
  const Evidence* stayed = place_of(pair.odd, trace::EvidenceKind::stayed_at, finding);
  if (put == nullptr || stayed == nullptr || !same_line(put->at, stayed->at)) return std::nullopt;
  if (is_constructor(put->at) || same_line(put->at, *finding.where) || !is_device_of_value(stayed->at)) {
    return std::nullopt;
  }
  return Explanation{
      cause_at(put->at, pair.odd,
               mention_first(pair.odd) + " was put into `" + put->text +
                   "` here in an earlier call, and moved to what " + spoken_device(pair.odd.device) +
                   " was then the device of. It is used once more, and what it meets "
                   "is on " +
                   spoken_device(pair.wanted.device) + "."),
      Fix{put->at.file, put->at.line,
          "Make it anew when the device differs, too; or move it " + where_used(pair.odd, pair.wanted, finding) + "."}};
}

}  // namespace

std::optional<Explanation> kept_from_first_call(const Finding& finding) {
  const auto pair = pair_of(finding);
  const Evidence* guard = pair ? guard_of(pair->odd, finding) : nullptr;
  if (!pair || was_to_move_since(pair->odd, finding)) return std::nullopt;
  if (guard == nullptr && begun_before_move(pair->odd, finding) != nullptr) return std::nullopt;
  if (guard == nullptr) {
    if (auto put = put_by_earlier_call(*pair, finding)) return put;
  }
  const LineageStep* stored = newest_before(pair->odd, finding);
  const LineageStep* arrival = arrival_of(pair->odd);
  if (stored == nullptr || arrival == nullptr || !is_changeable(stored->at, finding)) return std::nullopt;
  const bool memo = is_memo(pair->odd, *stored, *arrival);
  if (guard == nullptr && !memo && !is_kept(pair->odd, finding)) return std::nullopt;
  // A factory without a device would make it on the CPU in every call: that is another mistake.
  const bool follows_device = arrival->how != trace::How::created || names_device(asking_step(pair->odd).at) ||
                              !is_changeable(arrival->at, finding) || made_like_another(stored->at) ||
                              is_taken_from_weight(*stored, *arrival, finding) || memo;
  if (is_constructor(stored->at) || !follows_device) return std::nullopt;
  if (guard == nullptr &&
      (was_just_made(pair->odd, *arrival, finding) || was_just_returned(pair->odd, *stored, finding))) {
    return std::nullopt;
  }
  if (guard != nullptr) return used_again(*guard, *stored, *pair);
  if (is_kept_for_good(pair->odd, finding)) return std::nullopt;
  const Evidence* kept = kept_at(pair->odd, *stored, finding);
  if (kept != nullptr && is_constructor(kept->at)) {
    // What the constructor of a module keeps, it keeps once for all: that is another mistake. An object is made anew.
    if (evidence_of(pair->odd, trace::EvidenceKind::held_by_module) != nullptr) return std::nullopt;
    kept = nullptr;
  }
  const Frame& place = kept != nullptr ? kept->at : stored->at;
  const std::string made = kept != nullptr ? " was made in " + short_place(stored->at) : " was made in this line";
  RootCause cause = cause_at(
      place, pair->odd,
      mention_first(pair->odd) + made + " in an earlier call, on " + spoken_device(pair->odd.device) + ", and kept" +
          (kept != nullptr ? " in this line" : "") + ". The device has changed since, the kept value has not.");
  return Explanation{std::move(cause),
                     Fix{place.file, place.line,
                         "Make it anew when the device differs (let the device be part of what the cache is keyed by), "
                         "or move it " +
                             where_used(pair->odd, pair->wanted, finding) + "."}};
}

}  // namespace devsan::report::why
