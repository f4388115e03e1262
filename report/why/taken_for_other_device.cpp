// What an object has kept from a call that worked on one accelerator is taken out by a call that works on another one:
// the value that comes in now is where its caller has just put it, and the line that takes the other out has to bring
// it.
#include <algorithm>
#include <string>
#include <string_view>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// `fitted = self.fitted_cache[i]`, `state = self.states.get(key)`: the line takes an entry out of what an object keeps.
bool takes_entry(const Frame& place) {
  const auto assigned = split_assignment(place.statement());
  if (!assigned || !assigned->value.starts_with("self.")) return false;
  // What is taken out of the result of a call was made by this one.
  const std::string_view path = assigned->value.substr(0, assigned->value.find_first_of("[("));
  return assigned->value.ends_with(']') ? assigned->value.find('(') == assigned->value.npos : path.ends_with(".get");
}

// `state = self.states[i] if restored else self.begin(x)`: what is begun with the value that is brought would be where
// that is, so it was the entry.
bool takes_entry_if_any(const Frame& place, const Operand& brought) {
  const auto assigned = split_assignment(place.statement());
  if (!assigned || !assigned->value.starts_with("self.") || brought.name.empty()) return false;
  const std::string_view value = assigned->value;
  const std::size_t condition = value.find(" if ");
  const std::size_t other = value.find(" else ", std::min(condition, value.size()));
  if (other == value.npos || find_name(value, brought.name, other) == value.npos) return false;
  const std::string_view entry = value.substr(0, condition);
  return entry.ends_with(']') && entry.find('(') == entry.npos;
}

// A caller that still runs moved it, for this call.
bool is_brought_by_caller(const Operand& operand, const Finding& finding) {
  const LineageStep* move = newest_move_of(operand);
  if (move == nullptr || moves_module(*move) || names_device_itself(move->at)) return false;
  for (const Evidence& one : operand.evidence) {
    if (one.kind == trace::EvidenceKind::given_at && same_line(one.at, move->at)) return is_running(one.at, finding);
  }
  return false;
}

// What one operand was kept from, and another one is brought beside.
std::optional<Explanation> taken_beside(const Operand& kept, const Operand& brought, const Finding& finding) {
  const Evidence* taken = place_of(kept, trace::EvidenceKind::bound_at, finding);
  const bool entry = taken != nullptr && (takes_entry(taken->at) || takes_entry_if_any(taken->at, brought));
  if (!entry || is_weight(kept) || kept.lineage.empty()) return std::nullopt;
  const LineageStep& made = kept.lineage.front();
  const LineageStep* arrival = arrival_of(kept);
  const auto still_runs = [&](const Frame& call) {
    return same_function(call, taken->at) && !same_line(call, taken->at) && is_running(call, finding);
  };
  if (arrival == nullptr || is_running(made.at, finding)) return std::nullopt;
  // A script runs all the time; of its lines, only the one that it is in.
  const bool of_script =
      arrival->at.function == "<module>" &&
      std::ranges::none_of(finding.stack, [&](const Frame& one) { return same_line(one, arrival->at); });
  if (!of_script && is_running(arrival->at, finding)) return std::nullopt;
  if (std::ranges::any_of(arrival->calls, still_runs)) return std::nullopt;
  if (!is_brought_by_caller(brought, finding)) return std::nullopt;
  const std::string edit = assigned_after_move(taken->at, device_at(taken->at, brought, finding));
  return Explanation{
      cause_at(taken->at, kept,
               mention_first(kept) + " was made in " + short_place(made.at) + " by an earlier call, on " + kept.device +
                   ", and is taken out here as it was kept. This call works on " + brought.device + ", where " +
                   short_place(newest_move_of(brought)->at) + " has put " + mention(brought) + "."),
      Fix{taken->at.file, taken->at.line,
          "Bring what is taken out to the device of what it is used with" +
              (edit.empty() ? "." : ": `" + edit + "`.")}};
}

// "cache.states[self.index]" of `state = cache.states[self.index].clone()`.
bool takes_entry_of_object(const Frame& place) {
  const auto assigned = split_assignment(place.statement());
  if (!assigned) return false;
  const std::size_t open = assigned->value.find('[');
  const std::string_view path = assigned->value.substr(0, open);
  return open != assigned->value.npos && path.find('.') != path.npos && path.find_first_of("( ") == path.npos;
}

// `[torch.zeros(n, device=device) for _ in layers]`: an entry for each part of a model that lies on several
// accelerators, all made on one of them. Each part has to bring its own.
std::optional<Explanation> made_for_all_parts(const Pair& pair, const Finding& finding) {
  if (evidence_of(pair.odd, trace::EvidenceKind::model_spread) == nullptr || is_weight(pair.odd)) return std::nullopt;
  const LineageStep* arrival = arrival_of(pair.odd);
  const Evidence* taken = place_of(pair.odd, trace::EvidenceKind::bound_at, finding);
  if (taken == nullptr || arrival == nullptr || !same_function(taken->at, *finding.where)) return std::nullopt;
  const bool several = arrival->at.statement().find(" for ") != std::string::npos;
  if (!several || same_function(arrival->at, taken->at) || !takes_entry_of_object(taken->at)) return std::nullopt;
  return Explanation{
      cause_at(taken->at, pair.odd,
               "This line takes the entry of one part of a model out of what " + short_place(arrival->at) +
                   " has made for all of them, on " + pair.odd.device + ". The parts lie on several accelerators; " +
                   "what this one works with is on " + pair.wanted.device + "."),
      Fix{taken->at.file, taken->at.line,
          "Bring the entry to the part that uses it in this line: `.to(" + device_expression(pair.wanted) + ")`."}};
}

// `self.shift = shift` in a method of a module: computed from what came in on one accelerator, and met by a later call
// with what is on the one that the module works on.
std::optional<Explanation> stored_as_it_came(const Pair& pair, const Finding& finding) {
  const Evidence* held = evidence_of(pair.odd, trace::EvidenceKind::held_by_module);
  const Evidence* stored = held != nullptr ? store_of(pair.odd, *held, finding) : nullptr;
  if (stored == nullptr || is_weight(pair.odd) || is_constructor(stored->at) || pair.odd.lineage.empty()) {
    return std::nullopt;
  }
  const LineageStep& newest = pair.odd.lineage.front();
  const bool own = newest.how == trace::How::derived && class_of(newest.at) == class_of(stored->at);
  const LineageStep* arrival = arrival_of(pair.odd);
  if (!own || arrival == nullptr || class_of(arrival->at) == class_of(stored->at)) return std::nullopt;
  const std::string edit = assigned_after_move(stored->at, "'" + pair.wanted.device + "'");
  return Explanation{
      cause_at(stored->at, pair.odd,
               "This line keeps " + mention(pair.odd) + " where what it is computed from came in, on " +
                   pair.odd.device + ". What it meets in a later call is on " + pair.wanted.device + "."),
      Fix{stored->at.file, stored->at.line,
          "Keep it where the module works: `.to(" + device_expression(pair.wanted) +
              ")` of a weight, or of what it meets" + (edit.empty() ? "." : "; here `" + edit + "`.")}};
}

}  // namespace

std::optional<Explanation> taken_for_other_device(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !on_accelerator(pair->odd) || !on_accelerator(pair->wanted)) return std::nullopt;
  if (auto made = made_for_all_parts(*pair, finding)) return made;
  if (auto stored = stored_as_it_came(*pair, finding)) return stored;
  if (auto taken = taken_beside(pair->wanted, pair->odd, finding)) return taken;
  return taken_beside(pair->odd, pair->wanted, finding);
}

}  // namespace devsan::report::why
