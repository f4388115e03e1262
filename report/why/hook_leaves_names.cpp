// A hook brings over what its module is called with, but only what is given by position. A mask that is given by name
// meets weights on another device than its own.
#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

namespace {

// `return (args[0].to(device), *args[1:])`
std::optional<Explanation> leaves_argument(const Pair& pair, const Finding& finding) {
  const Evidence* hook = place_of(pair.odd, trace::EvidenceKind::hook_leaves_argument_at, finding);
  if (hook == nullptr) return std::nullopt;
  const std::string there = spoken_device(pair.wanted.device);
  return Explanation{
      cause_at(hook->at, pair.odd,
               "This hook moves some of what its module is called with to " + there + ". `" + hook->text +
                   "` is among the rest, and goes on as it came, on " + spoken_device(pair.odd.device) + "."),
      Fix{hook->at.file, hook->at.line, "Move all tensors that come by position to " + there + "."}};
}

}  // namespace

std::optional<Explanation> hook_leaves_names(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || is_weight(pair->odd)) return std::nullopt;
  if (auto argument = leaves_argument(*pair, finding)) return argument;
  const Evidence* hook = place_of(pair->odd, trace::EvidenceKind::hook_leaves_names_at, finding);
  if (hook == nullptr) return std::nullopt;
  const std::string there = spoken_device(pair->wanted.device);
  const bool blind = hook->at.statement().find("register_forward_pre_hook") != std::string::npos;
  return Explanation{
      cause_at(hook->at, pair->odd,
               std::string(blind ? "The hook that is registered here moves to " : "This hook moves to ") + there +
                   " what its module is given by position. `" + hook->text + "` is given by name" +
                   (blind ? ", which the hook does not see." : ", and goes on as it came.")),
      Fix{hook->at.file, hook->at.line,
          blind ? "Register it with `with_kwargs=True`, and let it move what comes by name, too; or give `" +
                      hook->text + "` by position."
                : "Move what comes by name, too, to " + there + "."}};
}

}  // namespace devsan::report::why
