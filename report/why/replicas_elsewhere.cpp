// `nn.DataParallel(model)` of a model on another GPU than the first: it takes all GPUs where it is not told which, and
// looks for the model on the first of them.
#include <string>

#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> replicas_elsewhere(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || finding.message.find("(device_ids[0])") == std::string::npos) return std::nullopt;
  const Evidence* wrapped = place_of(pair->odd, trace::EvidenceKind::replicas_made_at, finding);
  const LineageStep* move = newest_move_of(pair->odd);
  const bool untold = wrapped != nullptr && wrapped->at.statement().find("device_ids") == std::string::npos;
  if (!untold || !on_accelerator(pair->odd) || move == nullptr) return std::nullopt;
  return Explanation{
      cause_at(wrapped->at, pair->odd,
               "This line is told no `device_ids`, so it takes all GPUs, and looks for the model on the "
               "first: " +
                   pair->wanted.device + ". " + short_place(move->at) + " has put " + mention(pair->odd) + " on " +
                   pair->odd.device + "."),
      Fix{wrapped->at.file, wrapped->at.line, "Pass `device_ids`, with the GPU that the model is on first."}};
}

}  // namespace devsan::report::why
