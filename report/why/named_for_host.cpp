// `seq_lens_cpu`, `offsets_on_host`: what the program calls so is meant to be on the host. Where it is on an
// accelerator, it is the odd one, whatever it meets.
#include <string>

#include "report/frames.h"
#include "report/operands.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/host_names.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> named_for_host(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !on_accelerator(pair->wanted)) return std::nullopt;
  const Operand& named = pair->wanted;
  const bool says = says_host(named.name) || evidence_of(named, trace::EvidenceKind::device_twin) != nullptr;
  if (!says || says_host(pair->odd.name) || is_weight(named)) return std::nullopt;
  const LineageStep* arrival = arrival_of(named);
  if (arrival == nullptr || !is_changeable(arrival->at, finding)) return std::nullopt;
  const bool moved = arrival->how == trace::How::moved;
  const std::string edit =
      moved || names_device(arrival->at) ? "" : with_argument(call_at(arrival->at), "device='cpu'");
  return Explanation{cause_at(arrival->at, named,
                              mention_first(named) + " says by its name that it is on the host, and " +
                                  (moved ? "this line puts it on " : "begins in this line on ") + named.device +
                                  ". What it meets is on the CPU."),
                     Fix{arrival->at.file, arrival->at.line,
                         moved          ? "Leave it on the CPU in this line."
                         : edit.empty() ? "Make it on the CPU in this line."
                                        : "Make it on the CPU: `" + edit + "`."}};
}

}  // namespace devsan::report::why
