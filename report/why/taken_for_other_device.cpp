// What an object has kept from a call that worked on one accelerator is taken out by a call that works on another one:
// the value that comes in now is where its caller has just put it, and the line that takes the other out has to bring
// it.
#include <algorithm>
#include <string>
#include <string_view>

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
  if (taken == nullptr || !takes_entry(taken->at) || is_weight(kept) || kept.lineage.empty()) return std::nullopt;
  const LineageStep& made = kept.lineage.front();
  const LineageStep* arrival = arrival_of(kept);
  const auto still_runs = [&](const Frame& call) {
    return same_function(call, taken->at) && !same_line(call, taken->at) && is_running(call, finding);
  };
  if (arrival == nullptr || is_running(made.at, finding) || is_running(arrival->at, finding)) return std::nullopt;
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

}  // namespace

std::optional<Explanation> taken_for_other_device(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !on_accelerator(pair->odd) || !on_accelerator(pair->wanted)) return std::nullopt;
  if (auto taken = taken_beside(pair->wanted, pair->odd, finding)) return taken;
  return taken_beside(pair->odd, pair->wanted, finding);
}

}  // namespace devsan::report::why
