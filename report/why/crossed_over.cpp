// A value passes from one accelerator's part of a program to another's. Each part is where it should be, and so is what
// each computes; what is missing is the move between them, in the line that hands the value on.
#include <algorithm>
#include <string_view>

#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

bool moves_module(const LineageStep& move) {
  return move.innermost.file.ends_with("/torch/nn/modules/module.py");
}

// A function that has returned by now brought it to that device, and computed something there.
bool used_where_moved(const Operand& odd, const LineageStep& move, const Finding& finding) {
  return &move != &odd.lineage.front() && !is_running(move.at, finding) &&
         std::ranges::any_of(odd.lineage, [&](const LineageStep& step) {
           return step.how == trace::How::derived && step.device == odd.device && same_function(step.at, move.at);
         });
}

// Whether the value is where it should be: computed there with a module's weights, or with something else that a
// function took it there for; or given to a model that lies on both devices.
bool belongs_there(const Pair& pair, const LineageStep& move, const Finding& finding) {
  if (moves_module(move)) return !is_weight(pair.wanted) && !is_weight(pair.odd);
  if (used_where_moved(pair.odd, move, finding)) return true;
  return !is_weight(pair.wanted) && !is_weight(pair.odd) &&
         evidence_of(pair.odd, trace::EvidenceKind::model_spread) != nullptr;
}

// The line that handed it on: where a function that is running got it, or else the last that computed it.
const Frame* handed_on(const Operand& odd, const LineageStep& move, const Finding& finding) {
  const Evidence* bound = place_of(odd, trace::EvidenceKind::bound_at, finding);
  if (bound != nullptr && !same_function(bound->at, *finding.where)) return &bound->at;
  for (const LineageStep& step : odd.lineage) {
    if (&step == &move) break;
    if (is_changeable(step.at, finding) && !made_in_failing_call(step, finding)) return &step.at;
  }
  return bound != nullptr && !same_line(bound->at, *finding.where) ? &bound->at : nullptr;
}

}  // namespace

std::optional<Explanation> crossed_over(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !on_accelerator(pair->odd) || !on_accelerator(pair->wanted)) return std::nullopt;
  const LineageStep* move = newest_move_of(pair->odd);
  if (move == nullptr || !belongs_there(*pair, *move, finding)) return std::nullopt;
  const Frame* place = handed_on(pair->odd, *move, finding);
  if (place == nullptr || same_line(*place, move->at)) return std::nullopt;
  RootCause cause =
      cause_at(*place, pair->odd,
               mention_first(pair->odd) + " comes from " + pair->odd.device + ", where " + short_place(move->at) +
                   (moves_module(*move) ? " put the weights that it is computed with" : " takes it to be used there") +
                   ". This line hands it on as it is, and what it meets is on " + pair->wanted.device + ".");
  return Explanation{std::move(cause),
                     Fix{place->file, place->line,
                         "Bring it to " + pair->wanted.device + " in this line; or where it is used, in " +
                             short_place(*finding.where) + ": `" + move_call(pair->odd, pair->wanted) + "`."}};
}

}  // namespace devsan::report::why
