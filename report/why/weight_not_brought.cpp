// Weights that are too large for the accelerator rest on the host, and each layer brings over what it needs when it is
// called: `F.linear(x, self.weight.to(x))`. A parameter that a line uses without that stays on the host with all of
// them; that nothing has moved the model is on purpose.
#include <algorithm>

#include "report/frames.h"
#include "report/statement_text.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// A layer of torch's own brings nothing over: there another kind of layer was to be made, or the model to be moved.
bool is_used_by_torch_layer(const Finding& finding) {
  const auto outside = std::ranges::find_if(finding.stack, [](const Frame& frame) { return !frame.torch; });
  return std::any_of(finding.stack.begin(), outside,
                     [](const Frame& frame) { return frame.file.find("/torch/nn/modules/") != std::string::npos; });
}

// `task = self.task_embedding[kind]`: the line that takes it; else the one that uses it.
const Frame& used_at(const Operand& odd, const Finding& finding) {
  const Evidence* bound = place_of(odd, trace::EvidenceKind::bound_at, finding);
  const bool takes = bound != nullptr && split_assignment(bound->at.statement());
  return takes ? bound->at : *finding.where;
}

}  // namespace

std::optional<Explanation> weight_not_brought(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !was_never_moved(pair->odd)) return std::nullopt;
  const Evidence* brought = place_of(pair->odd, trace::EvidenceKind::weight_brought_at, finding);
  if (brought == nullptr || is_used_by_torch_layer(finding)) return std::nullopt;
  const Frame& place = used_at(pair->odd, finding);
  if (!is_changeable(place, finding)) return std::nullopt;
  const bool bare = is_weight(pair->odd);
  const std::string edit = assigned_after_move(place, device_at(place, pair->wanted, finding));
  return Explanation{
      cause_at(place, pair->odd,
               mention_first(pair->odd) + (bare ? " is a weight of `" : " is made of a weight of `") + brought->text +
                   "`, whose weights rest on the CPU. " + short_place(brought->at) + " brings another one to " +
                   pair->wanted.device + " for each use; this line " + (bare ? "uses it" : "takes it") + " as it is."),
      Fix{place.file, place.line,
          "Bring it over for this use, as the others are" +
              (edit.empty() ? ": `.to('" + pair->wanted.device + "')`." : ": `" + edit + "`.")}};
}

}  // namespace devsan::report::why
