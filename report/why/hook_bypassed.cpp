// Offloading keeps weights on the CPU and brings them over in a hook that runs when their module, or one around it, is
// called. Who uses `child.weight` by itself, or calls another method than `forward`, never passes the hook.
#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

namespace {

// What a hook can have brought over: no weight, and nothing that the failing function has made itself.
bool came_from_outside(const Operand& odd, const Finding& finding) {
  return !is_weight(odd) && !odd.lineage.empty() && !same_function(odd.lineage.back().at, *finding.where);
}

// `self.module.forward(x)`: the hook that brings over what the module is called with does not run.
std::optional<Explanation> forward_called(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !came_from_outside(pair->odd, finding)) return std::nullopt;
  const Evidence* call = place_of(pair->odd, trace::EvidenceKind::forward_called_at, finding);
  if (call == nullptr) return std::nullopt;
  const bool here = call->at.statement().find(".forward(") != std::string::npos;
  return Explanation{
      cause_at(call->at, pair->odd,
               "A `" + call->text + "` has hooks that see what it is called with, and this line " +
                   (here ? "calls its `forward`" : "keeps its `forward`, to be called later") +
                   ", past them: nothing brings " + mention(pair->odd) + " to " + spoken_device(pair->wanted.device) +
                   "."),
      Fix{call->at.file, call->at.line,
          here ? "Call the module itself, without `.forward`." : "Keep the module itself here, without `.forward`."}};
}

// `model.layers.register_forward_pre_hook(bring)`: a `ModuleList` is gone through, and never called.
std::optional<Explanation> on_list(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair) return std::nullopt;
  const Evidence* hook = place_of(pair->odd, trace::EvidenceKind::hook_on_list_at, finding);
  // A hook may bring over the weights of its module, too, which nothing else has moved then.
  const bool weight = is_weight(pair->odd) && pair->odd.on_cpu() && was_never_moved(pair->odd);
  if (hook == nullptr || !(weight || came_from_outside(pair->odd, finding))) return std::nullopt;
  return Explanation{
      cause_at(hook->at, pair->odd,
               "This line registers a hook on a `" + hook->text +
                   "`, which nobody ever calls: its modules are called one by one, and nothing brings " +
                   mention(pair->odd) + " to " + spoken_device(pair->wanted.device) + "."),
      Fix{hook->at.file, hook->at.line, "Register the hook on each module in the `" + hook->text + "`."}};
}

}  // namespace

std::optional<Explanation> hook_bypassed(const Finding& finding) {
  if (!finding.where) return std::nullopt;
  if (auto forward = forward_called(finding)) return forward;
  if (auto list = on_list(finding)) return list;
  for (const Operand& operand : finding.operands) {
    const Evidence* hook = evidence_of(operand, trace::EvidenceKind::owner_forward_hook);
    // The module that is called may be the other one that has the weight.
    if (!operand.odd || hook == nullptr || evidence_of(operand, trace::EvidenceKind::tied_to) != nullptr) continue;
    const bool known = is_changeable(hook->at, finding);
    const Frame& line = known ? hook->at : *finding.where;
    Fix fix{line.file, line.line,
            "Call the module that has the hook instead of using " + mention(operand) + " past it in " +
                short_place(*finding.where) + ", or put the hook on what is called there."};
    if (!known) return Explanation{std::nullopt, std::move(fix)};
    RootCause cause =
        cause_at(hook->at, operand,
                 "The hook `" + hook->text + "` runs when a module that " + mention(operand) +
                     " belongs to is called. " + short_place(*finding.where) + " uses " + mention(operand) +
                     " without calling that module, so it is still on " + spoken_device(operand.device) + ".");
    return Explanation{std::move(cause), std::move(fix)};
  }
  return std::nullopt;
}

}  // namespace devsan::report::why
