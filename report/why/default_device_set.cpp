// Two factories that were told no device made their tensors on different ones: somebody has set a default device
// between them, in a function that is not the program's beginning.
#include <algorithm>

#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// `set_default_device(None)` after a block, where there was one before.
std::optional<Explanation> cleared(const Pair& pair, const Finding& finding) {
  const Evidence* line = place_of(pair.odd, trace::EvidenceKind::default_device_cleared_at, finding);
  const LineageStep* made = made_of_no_device(pair.odd);
  const LineageStep* before = made_of_no_device(pair.wanted);
  if (line == nullptr || made == nullptr || before == nullptr) return std::nullopt;
  return Explanation{
      cause_at(line->at, pair.odd,
               "This line takes the default device away. " + mention_first(pair.odd) + ", made after that in " +
                   short_place(made->at) + ", is on " + spoken_device(pair.odd.device) + "; " + mention(pair.wanted) +
                   ", made before in " + short_place(before->at) + ", is on " + spoken_device(pair.wanted.device) +
                   "."),
      Fix{line->at.file, line->at.line,
          "Set the one again that there was: keep `torch.get_default_device()` before it is changed; or change it by "
          "`with torch.device(...):`, which does that by itself."}};
}

// Each thread has a default device of its own. What a function makes that runs in another thread than the main one, and
// not below the line that sets it, is on the CPU.
std::optional<Explanation> set_for_other_thread(const Evidence& set, const LineageStep& made, const Operand& left,
                                                const Finding& finding) {
  const bool in_call = std::ranges::any_of(made.calls, [&](const Frame& call) { return is_running(call, finding); });
  const bool other = finding.thread != finding.pid && in_call && !is_running(set.at, finding);
  if (!other || !left.on_cpu() || !is_changeable(made.at, finding)) return std::nullopt;
  return Explanation{
      cause_at(made.at, left,
               mention_first(left) +
                   " is made here without a device, and not in the main thread. The default device that " +
                   short_place(set.at) +
                   " sets is that of the thread which runs it; in any other, tensors are made on the CPU."),
      Fix{made.at.file, made.at.line,
          "Give the device here, as that of what it goes with; or set the default device in each thread that makes "
          "tensors."}};
}

}  // namespace

std::optional<Explanation> default_device_set(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  if (auto told = cleared(*pair, finding)) return told;
  for (const Operand* operand : {&pair->odd, &pair->wanted}) {
    const Operand& other = operand == &pair->odd ? pair->wanted : pair->odd;
    const Evidence* set = place_of(*operand, trace::EvidenceKind::default_device_at, finding);
    const LineageStep* made = made_of_no_device(*operand);
    const LineageStep* before = made_of_no_device(other);
    if (set == nullptr || made == nullptr || before == nullptr) continue;
    if (evidence_of(other, trace::EvidenceKind::default_device_at) != nullptr) continue;
    if (auto thread = set_for_other_thread(*set, *before, other, finding)) return thread;
    if (is_beginning(set->at)) continue;
    std::string why = "From this line on, what is made without a device is on " + spoken_device(operand->device) +
                      ", in all of the program: so is " + mention(*operand) + ", in " + short_place(made->at) + "; " +
                      mention(other) + ", in " + short_place(before->at) + ", is not.";
    return Explanation{cause_at(set->at, *operand, std::move(why)),
                       Fix{set->at.file, set->at.line,
                           "Set it for the block that needs it alone: `with torch.device(...):`; or give "
                           "the device in " +
                               short_place(made->at) + "."}};
  }
  return std::nullopt;
}

}  // namespace devsan::report::why
