// `x = x + self.attention(h).to(x.device)`, and further down `x = x + self.mlp(h)`: the function knows that what it
// gets may be elsewhere, and one of its lines does nothing about it.
#include <string>
#include <string_view>

#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> twin_moves(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || is_weight(pair->odd) || !is_changeable(*finding.where, finding)) return std::nullopt;
  const Evidence* twin = place_of(pair->odd, trace::EvidenceKind::twin_moves_at, finding);
  if (twin == nullptr) return std::nullopt;
  const std::string_view text = twin->text;
  // What the other line brings to the host may be wanted there alone, and the other way round.
  if (text.ends_with(".cpu()") && !pair->wanted.on_cpu()) return std::nullopt;
  if (text.ends_with(".cuda()") && pair->wanted.on_cpu()) return std::nullopt;
  return Explanation{
      cause_at(*finding.where, pair->odd,
               short_place(twin->at) + ", which reads as this line does, moves what it gets. This one leaves " +
                   mention(pair->odd) + " on " + spoken_device(pair->odd.device) + "."),
      Fix{finding.where->file, finding.where->line, "Move it in this line, too: `" + twin->text + "`."}};
}

}  // namespace devsan::report::why
