// `device = self.embed.weight.device`: the weight rests on the host, and a hook brings it over for each call. Who asks
// it before that is told where it rests.
#include <algorithm>
#include <array>
#include <string>

#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> asked_before_move(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || is_weight(pair->odd) || newest_move_of(pair->odd) != nullptr) return std::nullopt;
  // What an object or a global keeps may be of an earlier call, which asked a tensor of its own.
  constexpr std::array<trace::EvidenceKind, 3> kKept = {
      trace::EvidenceKind::held_by_object, trace::EvidenceKind::held_by_module, trace::EvidenceKind::held_by_global};
  const auto keeps = [&](trace::EvidenceKind kind) { return evidence_of(pair->odd, kind) != nullptr; };
  if (std::ranges::any_of(kKept, keeps)) return std::nullopt;
  const Evidence* asked = place_of(pair->odd, trace::EvidenceKind::device_asked_at, finding);
  if (asked == nullptr) return std::nullopt;
  const std::string owner = "`" + asked->text + "`";
  return Explanation{
      cause_at(asked->at, pair->odd,
               "This line asks " + owner + " for the device that " + mention(pair->odd) +
                   " is made on: " + spoken_device(pair->odd.device) + " by then. " + owner + " is on " +
                   spoken_device(pair->wanted.device) + " now, and so is what is computed with it."),
      Fix{asked->at.file, asked->at.line,
          "Ask what is on " + spoken_device(pair->wanted.device) +
              " already, as an input of the function, instead of " + owner + "; or ask when that has come there."}};
}

}  // namespace devsan::report::why
