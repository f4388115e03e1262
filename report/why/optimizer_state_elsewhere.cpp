// An optimizer's state belongs on the device of its parameter. `load_state_dict` sees to it; code that writes into
// `optimizer.state` itself has to do so, too.
#include "report/operands.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> optimizer_state_elsewhere(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const Evidence* state = evidence_of(pair->odd, trace::EvidenceKind::optimizer_state);
  if (state == nullptr) return std::nullopt;
  const LineageStep* arrival = arrival_of(pair->odd);
  const Frame* place = nullptr;
  if (is_changeable(state->at, finding)) {
    place = &state->at;
  } else if (arrival != nullptr && is_changeable(arrival->at, finding)) {
    place = &arrival->at;
  }
  const std::string what = "`" + (state->text.empty() ? spoken_name(pair->odd) : state->text) + "`";
  const Frame& line = place != nullptr ? *place : *finding.where;
  Fix fix{line.file, line.line,
          "Move " + what +
              " to its parameter's device when it is put there (`value.to(parameter.device)`), or restore "
              "it with `optimizer.load_state_dict()`, which does that."};
  if (place == nullptr) return Explanation{std::nullopt, std::move(fix)};
  RootCause cause = cause_at(*place, pair->odd,
                             what + " is put into the optimizer's state on " + spoken_device(pair->odd.device) +
                                 "; its parameter is on " + pair->wanted.device + ".");
  return Explanation{std::move(cause), std::move(fix)};
}

}  // namespace devsan::report::why
