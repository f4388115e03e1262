// `corners_of(size, float(heading[i]), self.center[i])`, under `size = self.size.cpu()` and `heading =
// self.heading.cpu()`: a function brings what it works with to the host, and hands one value on as it is.
#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// `poses, shapes = poses.cpu(), shapes.cpu()`, and `joints` beside them is left: it takes in what was brought to the
// host as well.
std::optional<Explanation> left_beside(const Pair& pair, const Finding& finding) {
  const Evidence* work = evidence_of(pair.odd, trace::EvidenceKind::host_work);
  const LineageStep* brought = newest_move_of(pair.odd);
  const Evidence* bound = place_of(pair.wanted, trace::EvidenceKind::bound_at, finding);
  if (work == nullptr || brought == nullptr || bound == nullptr || moves_module(*brought)) return std::nullopt;
  if (!names_device_itself(brought->at) || !same_function(bound->at, *finding.where)) return std::nullopt;
  const bool computed = !pair.wanted.lineage.empty() && same_line(pair.wanted.lineage.front().at, bound->at) &&
                        pair.wanted.lineage.front().how == trace::How::derived;
  if (!computed || same_line(bound->at, *finding.where)) return std::nullopt;
  const std::string edit = assigned_after_move(bound->at, "'cpu'");
  return Explanation{cause_at(bound->at, pair.wanted,
                              "`" + finding.where->function + "` brings what it works with to the host, in " +
                                  work->text + " lines. " + mention_first(pair.wanted) +
                                  ", which gets its value here, is left on " + spoken_device(pair.wanted.device) +
                                  "; what it meets was brought to the CPU in " + short_place(brought->at) + "."),
                     Fix{bound->at.file, bound->at.line,
                         "Bring it to the CPU as the others are" + (edit.empty() ? "." : ": `" + edit + "`.")}};
}

}  // namespace

std::optional<Explanation> left_on_accelerator(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !on_accelerator(pair->wanted)) return std::nullopt;
  if (is_weight(pair->odd) || is_weight(pair->wanted)) return std::nullopt;
  const Evidence* handed = place_of(pair->wanted, trace::EvidenceKind::among_host_work_at, finding);
  if (handed == nullptr) return left_beside(*pair, finding);
  return Explanation{cause_at(handed->at, pair->wanted,
                              "`" + handed->at.function + "` brings what it works with to the host, in " +
                                  handed->text + " lines. This one hands " + mention(pair->wanted) +
                                  " on as it is, on " + spoken_device(pair->wanted.device) + "."),
                     Fix{handed->at.file, handed->at.line, "Bring it to the host, too, as the others are: `.cpu()`."}};
}

}  // namespace devsan::report::why
