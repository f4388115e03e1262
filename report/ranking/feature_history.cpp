#include <algorithm>

#include "report/ranking/context.h"

namespace devsan::report::ranking {

using slice::Side;

namespace {

// The step's line, or where code outside of what is at hand was called for it.
void set_step(const Context& context, const LineageStep* step, Candidate& candidate, Feature line, Feature call) {
  if (step == nullptr) return;
  bool by_library = context.code.file(step->at.file) == nullptr;
  if (!by_library && context.is_at(step->at, candidate)) candidate[line] = 1;
  std::size_t distance = 0;
  for (const Frame& frame : step->calls) {
    if (context.code.file(frame.file) == nullptr) continue;
    if (context.is_at(frame, candidate)) {
      if (by_library) candidate[line] = 1;
      candidate[call] = std::max(candidate[call], static_cast<float>(nearness(static_cast<double>(distance))));
    }
    by_library = false;
    ++distance;
  }
}

void set_leads(const slice::Place& place, Candidate& candidate) {
  if (!place.leads_to_origin || place.aspect == slice::Aspect::device || place.side == Side::program) return;
  const bool odd = place.side == Side::odd;
  const Feature leads = odd ? Feature::leads_to_origin : Feature::other_leads_to_origin;
  const Feature elsewhere = odd ? Feature::leads_elsewhere : Feature::other_leads_elsewhere;
  if (*place.leads_to_origin) candidate[leads] = 1;
  candidate[elsewhere] = candidate[leads] > 0 ? 0 : 1;
}

}  // namespace

void set_history(const Context& context, Candidate& candidate) {
  set_step(context, context.odd_step, candidate, Feature::made_odd, Feature::called_maker);
  set_step(context, context.other_step, candidate, Feature::made_other, Feature::called_other_maker);
  const bool unseen = context.odd_step != nullptr && context.code.file(context.odd_step->at.file) == nullptr;
  candidate[Feature::made_by_library] = unseen ? 1 : 0;
  for (const slice::Place* place : candidate.places) {
    const bool odd = place->side == Side::odd;
    if (odd && place->role >= slice::Role::history_created) candidate[Feature::in_history] = 1;
    set_leads(*place, candidate);
    if (!place->from_origin) continue;
    const Feature origin = odd ? Feature::way_from_origin : Feature::other_way_from_origin;
    const Feature use = odd ? Feature::way_to_use : Feature::other_way_to_use;
    const auto near = [](std::size_t steps) { return static_cast<float>(nearness(static_cast<double>(steps))); };
    candidate[origin] = std::max(candidate[origin], near(*place->from_origin));
    candidate[use] = std::max(candidate[use], near(*place->from_use));
  }
  double distance = 0;
  for (const Frame& frame : context.finding.stack) {
    if (context.code.file(frame.file) == nullptr) continue;
    if (context.is_at(frame, candidate)) {
      candidate[Feature::on_stack_nearness] = static_cast<float>(nearness(distance));
      break;
    }
    distance += 1;
  }
  const auto& where = context.finding.where;
  candidate[Feature::is_failing_line] = where && context.is_at(*where, candidate) ? 1 : 0;
  candidate[Feature::ran] = context.ran(candidate.function) ? 1 : 0;
  candidate[Feature::made_where_tensor_at_hand] =
      candidate[Feature::made_odd] * (context.around(candidate.function).has_tensor ? 1 : 0);
  candidate[Feature::made_where_failing] =
      candidate[Feature::made_odd] * (candidate.function == context.failing_function ? 1 : 0);
}

}  // namespace devsan::report::ranking
