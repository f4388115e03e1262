// `exp_avg = torch.zeros_like(weight)`, of a weight that is kept on the host and copied over for each step: what is
// made like it meets what comes of the copies.
#include <string>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> made_like_kept(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || newest_move_of(pair->odd) != nullptr) return std::nullopt;
  const LineageStep* origin = arrival_of(pair->odd);
  const Evidence* copied = evidence_of(pair->odd, trace::EvidenceKind::source_copied_at);
  if (origin == nullptr || copied == nullptr || pair->odd.lineage.empty()) return std::nullopt;
  const LineageStep& like = pair->odd.lineage.front();
  const bool makes = like.how == trace::How::derived && like.op.find("_like") != std::string::npos;
  if (!makes || same_line(like.at, origin->at) || !is_changeable(like.at, finding)) return std::nullopt;
  const std::string edit = with_argument(call_at(like.at), "device=" + device_at(like.at, pair->wanted, finding));
  return Explanation{
      cause_at(like.at, pair->odd,
               "This line makes " + mention(pair->odd) + " on " + spoken_device(pair->odd.device) +
                   ", like what is kept there. That is copied to " + spoken_device(pair->wanted.device) + " in " +
                   short_place(copied->at) + ", and what comes of the copy is what this meets."),
      Fix{like.at.file, like.at.line,
          "Make it where it is used" + (edit.empty() ? ", on " + pair->wanted.device + "." : ": `" + edit + "`.")}};
}

}  // namespace devsan::report::why
