// Offloading and device maps work by hooks on modules. One that has none, since a condition passed it over or somebody
// has removed them, runs with what it is given, where that is.
#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

namespace {

Explanation removed(const Evidence& hook, const Pair& pair) {
  return {cause_at(hook.at, pair.odd,
                   "A hook has brought " + mention(pair.odd) +
                       " over at an earlier call; this line removes hooks, and now it stays on " +
                       spoken_device(pair.odd.device) + "."),
          Fix{hook.at.file, hook.at.line,
              "Bring what the hooks took care of to one device here, too; or move " + mention(pair.odd) + " to " +
                  spoken_device(pair.wanted.device) + " before the call."}};
}

}  // namespace

std::optional<Explanation> hook_missing(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const Evidence* hook = place_of(pair->odd, trace::EvidenceKind::hook_missing_at, finding);
  if (hook == nullptr) return std::nullopt;
  if (hook->text == "removed") return removed(*hook, *pair);
  const bool others = hook->text == "skipped";
  return Explanation{
      cause_at(hook->at, pair->odd,
               std::string("A hook that would bring it over is registered under this condition, ") +
                   (others ? "which has passed this module over: others have it."
                           : "which did not hold: no module has it.") +
                   " So " + mention(pair->odd) + " stays on " + spoken_device(pair->odd.device) + "."),
      Fix{hook->at.file, hook->at.line,
          std::string("Let the condition take in ") + (others ? "this module, too" : "this case, too") + "; or move " +
              mention(pair->odd) + " to " + spoken_device(pair->wanted.device) + " before it is used."}};
}

}  // namespace devsan::report::why
