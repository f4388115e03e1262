// `dead = (self.counts == 0).nonzero()`, where another line does `self.counts += (x > 0).sum(0).cpu()`: the program
// keeps a total on the host, and brings there what it adds. What it computes from that has to go back.
#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> result_of_host_total(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || is_weight(pair->odd) || !pair->odd.on_cpu() || !on_accelerator(pair->wanted)) return std::nullopt;
  const Evidence* fed = evidence_of(pair->odd, trace::EvidenceKind::source_fed_on_host_at);
  const LineageStep* computed = newest_before(pair->odd, finding);
  if (fed == nullptr || computed == nullptr || !was_never_moved(pair->odd)) return std::nullopt;
  if (computed->how != trace::How::derived || !is_changeable(computed->at, finding)) return std::nullopt;
  const std::string edit = assigned_after_move(computed->at, device_at(computed->at, pair->wanted, finding));
  return Explanation{cause_at(computed->at, pair->odd,
                              "This line computes " + mention(pair->odd) + " from `" + fed->text +
                                  "`, which is kept on the host on purpose: " + short_place(fed->at) +
                                  " brings there what it adds. The result goes to what is on " +
                                  spoken_device(pair->wanted.device) + "."),
                     Fix{computed->at.file, computed->at.line,
                         "Bring the result to " + spoken_device(pair->wanted.device) +
                             (edit.empty() ? ", here or where it is used, in " + short_place(*finding.where) + "."
                                           : ": `" + edit + "`.")}};
}

}  // namespace devsan::report::why
