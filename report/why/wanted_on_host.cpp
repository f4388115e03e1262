// An operator reads one of its arguments on the host, whatever device it works on: lengths of sequences, where to
// split.
#include "report/frames.h"
#include "report/operands.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"
#include "trace/odd_operand.h"

namespace devsan::report::why {

std::optional<Explanation> wanted_on_host(const Finding& finding) {
  const Operand* odd = first_odd(finding.operands);
  if (odd == nullptr || !finding.where || !on_accelerator(*odd) || !trace::wants_host(finding.message)) {
    return std::nullopt;
  }
  const Frame* made = nullptr;
  for (const LineageStep& step : odd->lineage) {
    if (made_in_failing_call(step, finding) || !is_changeable(step.at, finding)) continue;
    made = &step.at;
    break;
  }
  const Frame& place = made != nullptr ? *made : *finding.where;
  std::string why = "`" + odd->arg + "` is read on the host, and has to be on the CPU. " + mention_first(*odd) +
                    (made != nullptr ? " is computed here, on " : " is on ") + spoken_device(odd->device) + ".";
  return Explanation{
      cause_at(place, *odd, std::move(why)),
      Fix{place.file, place.line,
          "Bring it to the host with `.cpu()`, in this line or where it is used, in " + short_place(*finding.where) +
              "; the host waits for the device there, so once for all that is needed of it is best."}};
}

}  // namespace devsan::report::why
