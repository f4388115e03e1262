// `x = x + self.attention(h).to(x.device)`, and further down `x = x + self.mlp(h)`: the function knows that what it
// gets may be elsewhere, and one of its lines does nothing about it.
#include <string>
#include <string_view>

#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

namespace {

// What the other line brings to the host may be wanted there alone, and the other way round.
bool moves_where_missed(std::string_view text, const Pair& pair) {
  return pair.wanted.on_cpu() ? !text.ends_with(".cuda()") : !text.ends_with(".cpu()");
}

// `words = batch["words"].to(device)`, above `tags = batch["tags"]`: of two values that a function takes alike it moves
// one.
std::optional<Explanation> twin_of_binding(const Pair& pair, const Finding& finding) {
  const Evidence* twin = place_of(pair.odd, trace::EvidenceKind::binding_twin_at, finding);
  const Evidence* bound = place_of(pair.odd, trace::EvidenceKind::first_bound_at, finding);
  if (twin == nullptr || bound == nullptr || !moves_where_missed(twin->text, pair) || !was_never_moved(pair.odd)) {
    return std::nullopt;
  }
  return Explanation{
      cause_at(bound->at, pair.odd,
               short_place(twin->at) + ", which reads as this line does, moves what it gets. This one leaves `" +
                   bound->text + "` on " + spoken_device(pair.odd.device) +
                   (bound->text == pair.odd.name ? "." : ", which " + mention(pair.odd) + " comes from.")),
      Fix{bound->at.file, bound->at.line, "Move it in this line, too: `" + twin->text + "`."}};
}

}  // namespace

std::optional<Explanation> twin_moves(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || is_weight(pair->odd)) return std::nullopt;
  if (auto bound = twin_of_binding(*pair, finding)) return bound;
  const Evidence* twin = place_of(pair->odd, trace::EvidenceKind::twin_moves_at, finding);
  if (twin == nullptr || !is_changeable(*finding.where, finding) || !moves_where_missed(twin->text, *pair)) {
    return std::nullopt;
  }
  return Explanation{
      cause_at(*finding.where, pair->odd,
               short_place(twin->at) + ", which reads as this line does, moves what it gets. This one leaves " +
                   mention(pair->odd) + " on " + spoken_device(pair->odd.device) + "."),
      Fix{finding.where->file, finding.where->line, "Move it in this line, too: `" + twin->text + "`."}};
}

}  // namespace devsan::report::why
