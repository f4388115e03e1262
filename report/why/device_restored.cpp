// An object that remembers a device was loaded from a file, or from bytes: it remembers that of whoever saved it, and
// what it makes goes there.
#include <string>

#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> device_restored(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  for (const Operand* made : {&pair->odd, &pair->wanted}) {
    const Operand& other = made == &pair->odd ? pair->wanted : pair->odd;
    const Evidence* restored = place_of(*made, trace::EvidenceKind::restored_at, finding);
    const LineageStep* arrival = arrival_of(*made);
    if (restored == nullptr || arrival == nullptr) continue;
    // Beside something that nobody has put where it is, the one that was put somewhere is right.
    const bool placed =
        newest_move_of(other) != nullptr || evidence_of(other, trace::EvidenceKind::stayed_at) != nullptr;
    if (made == &pair->wanted && !placed) continue;
    const std::string device = spoken_device(made->device);
    return Explanation{
        cause_at(restored->at, *made,
                 "This line takes the object as it was saved, with its device: " + short_place(arrival->at) + " puts " +
                     mention(*made) + " on " + device + ", which it remembers. What it meets is on " +
                     spoken_device(other.device) + "."),
        Fix{restored->at.file, restored->at.line,
            "Set `" + restored->text + "` anew behind this line, to " + spoken_device(other.device) + "."}};
  }
  return std::nullopt;
}

}  // namespace devsan::report::why
