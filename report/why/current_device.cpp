// `.cuda()` and `device="cuda"` mean the GPU that is current for the thread, mostly the first. In a process that works
// on another one, what says no number is the odd one out.
#include <string_view>

#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// The step that put a tensor, no module, on the current GPU.
const LineageStep* on_current_device(const Operand& operand, const Finding& finding) {
  const LineageStep* arrival = arrival_of(operand);
  if (arrival == nullptr || !is_changeable(arrival->at, finding) || moves_module(*arrival)) return nullptr;
  const std::string call = call_at(arrival->at);
  for (const std::string_view bare : {".cuda()", "\"cuda\"", "'cuda'"}) {
    if (call.find(bare) != call.npos) return arrival;
  }
  return nullptr;
}

}  // namespace

std::optional<Explanation> current_device(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !on_accelerator(pair->odd) || !on_accelerator(pair->wanted)) return std::nullopt;
  const LineageStep* odd = on_current_device(pair->odd, finding);
  const LineageStep* wanted = on_current_device(pair->wanted, finding);
  if ((odd == nullptr) == (wanted == nullptr)) return std::nullopt;
  const Operand& there = odd != nullptr ? pair->odd : pair->wanted;
  const Operand& other = odd != nullptr ? pair->wanted : pair->odd;
  const Frame& place = odd != nullptr ? odd->at : wanted->at;
  return Explanation{cause_at(place, there,
                              mention_first(there) + " comes to the GPU that is current in this line, " + there.device +
                                  ", since no number is given. What it meets is on " + other.device + "."),
                     Fix{place.file, place.line,
                         "Name the device that the work is done on, " + other.device +
                             ", as the tensors beside it say (`device=x.device`); or make it current before: "
                             "`torch.cuda.set_device(...)`."}};
}

}  // namespace devsan::report::why
