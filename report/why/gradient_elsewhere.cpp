// The backward of a custom `autograd.Function` returned a gradient on another device than the value that it is the
// gradient of. The line that called backward is not to blame: what is returned was made in the backward.
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> gradient_elsewhere(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !finding.op.starts_with("autograd::") || !pair->wanted.device_argument) return std::nullopt;
  const std::string node = finding.op.substr(finding.op.rfind(':') + 1);
  const LineageStep* arrival = arrival_of(pair->odd);
  const std::string change = "Return each gradient of `" + node +
                             "` on the device of the input that it belongs to: `"
                             ".to('" +
                             pair->wanted.device + "')`, or `device=` where it is made.";
  if (arrival == nullptr || !is_changeable(arrival->at, finding)) {
    const Frame& place = finding.forward && !finding.forward->empty() ? finding.forward->front() : *finding.where;
    return Explanation{std::nullopt, Fix{place.file, place.line, change}};
  }
  RootCause cause = cause_at(
      arrival->at, pair->odd,
      "The gradient that `" + node + "` returns " + (arrival->how == trace::How::moved ? "is put on " : "begins on ") +
          spoken_device(pair->odd.device) + " in this line; its input is on " + pair->wanted.device + ".");
  return Explanation{std::move(cause), Fix{arrival->at.file, arrival->at.line, change}};
}

}  // namespace devsan::report::why
