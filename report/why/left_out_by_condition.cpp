// A loop moves the modules of a model that a condition chooses, by their names or types: `if "lora_" in name:`. One
// that belongs with them goes by another name, and stays where it was made.
#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> left_out_by_condition(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !was_never_moved(pair->odd)) return std::nullopt;
  const Evidence* chosen = place_of(pair->odd, trace::EvidenceKind::modules_chosen_at, finding);
  const Evidence* moved = evidence_of(pair->odd, trace::EvidenceKind::modules_moved_at);
  if (chosen == nullptr || moved == nullptr) return std::nullopt;
  const std::string device = spoken_device(pair->wanted.device);
  return Explanation{
      cause_at(chosen->at, pair->odd,
               short_place(moved->at) + " moves the modules that meet this condition to " + device + ", `" +
                   moved->text + "` among them. `" + chosen->text + "`, which " +
                   (is_weight(pair->odd) ? "owns " + mention(pair->odd) : mention(pair->odd) + " is made of") +
                   ", does not: it stays on " + spoken_device(pair->odd.device) + "."),
      Fix{chosen->at.file, chosen->at.line,
          "Let the condition take `" + chosen->text + "`, too; or move all modules that there are to " + device + "."}};
}

}  // namespace devsan::report::why
