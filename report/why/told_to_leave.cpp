// `Collector(policy, device="cpu", storing_device="cuda")` for a buffer that is told `device="cpu"`: a value was where
// it is kept in the end, and a setting had it moved away from there.
#include "report/frames.h"
#include "report/statement_lines.h"
#include "report/why/decision.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> told_to_leave(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !is_written_to(pair->odd, finding) || is_weight(pair->wanted) || !was_never_moved(pair->odd)) {
    return std::nullopt;
  }
  const LineageStep* move = newest_move_of(pair->wanted);
  const auto kept = decision_of(pair->odd, trace::EvidenceKind::device_from, finding);
  const auto sent = decision_of(pair->wanted, trace::EvidenceKind::device_from, finding);
  if (move == nullptr || moves_module(*move) || !kept || !sent || !was_on(pair->wanted, pair->odd.device)) {
    return std::nullopt;
  }
  if (!is_device_argument(*kept) || !is_device_argument(*sent)) return std::nullopt;
  const Frame place = line_of_keyword(sent->at, sent->name);
  return Explanation{
      cause_at(place, pair->wanted,
               mention_first(pair->wanted) + " was on " + spoken_device(pair->odd.device) + " before, and " +
                   short_place(move->at) + " moves it to " + spoken_device(pair->wanted.device) + " " +
                   because_of(*sent) + ". It is put into " + mention(pair->odd) + ", which " + short_place(kept->at) +
                   " has on " + spoken_device(pair->odd.device) + "."),
      Fix{place.file, place.line,
          "Let the two settings say the same device, here " + spoken_device(pair->odd.device) +
              "; or move each value where it is put in, in " + short_place(*finding.where) + "."}};
}

}  // namespace devsan::report::why
