// A dictionary is filled with tensors on an accelerator, and one line puts a tensor there that comes from elsewhere.
#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// Whether it was made, or brought where it is, for this entry.
bool made_for_entry(const Operand& operand, const Evidence& put) {
  const LineageStep* arrival = arrival_of(operand);
  return arrival == nullptr || same_line(arrival->at, put.at) || same_function(arrival->at, put.at);
}

}  // namespace

std::optional<Explanation> put_beside_others(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu()) return std::nullopt;
  const Evidence* put = place_of(pair->odd, trace::EvidenceKind::entry_put_at, finding);
  const Evidence* others = evidence_of(pair->odd, trace::EvidenceKind::entries_elsewhere);
  if (put == nullptr || others == nullptr || made_for_entry(pair->odd, *put)) return std::nullopt;
  const std::size_t space = others->text.find(' ');
  if (others->text.substr(0, space) != pair->wanted.device) return std::nullopt;
  std::string why = "This line puts " + mention(pair->odd) +
                    " there as it comes, on the CPU. Of the tensors beside it " + others->text.substr(space + 1) +
                    " are on " + spoken_device(pair->wanted.device) + ".";
  const std::string edit = assigned_after_move(put->at, device_at(put->at, pair->wanted, finding));
  return Explanation{
      cause_at(put->at, pair->odd, std::move(why)),
      Fix{put->at.file, put->at.line,
          "Move it to where the others are in this line" + (edit.empty() ? "" : ": `" + edit + "`") + "."}};
}

}  // namespace devsan::report::why
