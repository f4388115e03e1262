// Two lines put entries into one container: one of them moves what it puts there, the other does not.
#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// Another entry of the container that was moved when, or before, it was put there.
const LineageStep* move_of_another(const Operand& stayed, const Evidence& put, const Finding& finding) {
  for (const Operand& other : finding.operands) {
    const Evidence* beside = place_of(other, trace::EvidenceKind::entry_put_at, finding);
    if (beside == nullptr || beside->text != put.text || other.device == stayed.device) continue;
    const LineageStep* move = newest_move_of(other);
    if (move != nullptr && same_line(move->at, beside->at) && !same_line(move->at, put.at)) return move;
  }
  return nullptr;
}

}  // namespace

std::optional<Explanation> put_as_it_came(const Finding& finding) {
  if (!finding.where) return std::nullopt;
  for (const Operand& operand : finding.operands) {
    const Evidence* put = place_of(operand, trace::EvidenceKind::entry_put_at, finding);
    if (put == nullptr || !operand.on_cpu() || newest_move_of(operand) != nullptr) continue;
    const LineageStep* move = move_of_another(operand, *put, finding);
    if (move == nullptr) continue;
    RootCause cause = cause_at(put->at, operand,
                               "This line puts " + mention(operand) + " into `" + put->text + "` as it comes, on " +
                                   spoken_device(operand.device) + "; " + short_place(move->at) +
                                   " moves what it puts "
                                   "there to " +
                                   move->device + ".");
    return Explanation{std::move(cause),
                       Fix{put->at.file, put->at.line, "Move it here, too, with `.to('" + move->device + "')`."}};
  }
  return std::nullopt;
}

}  // namespace devsan::report::why
