// A running total that begins as a 0-dim CPU tensor and takes in numbers computed on an accelerator. An operator in
// place may not change its target's device, so the first number is refused.
#include "report/operands.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> total_made_on_cpu(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.is_scalar() || !on_accelerator(pair->odd)) return std::nullopt;
  const Operand& total = pair->wanted;
  if (!total.on_cpu() || !total.is_scalar() || newest_move_of(total) != nullptr) return std::nullopt;
  const LineageStep* origin = arrival_of(total);
  if (origin == nullptr || origin->how != trace::How::created || !is_changeable(origin->at, finding)) {
    return std::nullopt;
  }
  const std::string argument = "device='" + pair->odd.device + "'";
  const std::string edit = names_device(origin->at) ? "" : with_argument(call_at(origin->at), argument);
  RootCause cause = cause_at(origin->at, total,
                             mention_first(total) + " begins in this line as a tensor on the CPU. It takes in " +
                                 mention(pair->odd) + ", which is on " + pair->odd.device +
                                 ", and an operator in place cannot change its target's device.");
  return Explanation{std::move(cause), Fix{origin->at.file, origin->at.line,
                                           "Begin on " + pair->odd.device + ": `" + (edit.empty() ? argument : edit) +
                                               "`; or keep a Python number, and add `.item()` of what comes, which "
                                               "waits for the device each time."}};
}

}  // namespace devsan::report::why
