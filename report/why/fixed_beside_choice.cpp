// `self.flat = torch.zeros(n, device="cpu" if offload else dev)` and `self.overflow = torch.zeros(1, device=dev)`: of
// two tensors that an object makes for itself, one goes where a setting says, and the other does not ask for it.
#include <string>
#include <string_view>

#include "report/call_text.h"
#include "report/frames.h"
#include "report/why/decision.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

bool chooses(std::string_view text) {
  return text.find(" if ") != text.npos && text.find(" else ") != text.npos;
}

// "'cpu' if offload else dev" of the call that made something; empty where its device is no choice.
std::string choice_in(const Frame& made) {
  const std::string text = call_at(made);
  const auto call = split_call(text);
  if (!call) return "";
  for (const ArgumentText& one : call->arguments) {
    if (one.keyword == "device" && chooses(one.text)) return std::string(one.text);
  }
  return "";
}

// Whether the device that a line was told is chosen where that is decided: `self.where = "cpu" if offload else dev`.
bool is_chosen(const Operand& operand, const Finding& finding) {
  const auto decided = decision_of(operand, trace::EvidenceKind::device_from, finding);
  return decided && chooses(decided->at.statement());
}

}  // namespace

std::optional<Explanation> fixed_beside_choice(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !on_accelerator(pair->wanted) || pair->odd.lineage.empty()) return std::nullopt;
  const LineageStep& chosen = pair->odd.lineage.back();
  const LineageStep* fixed = arrival_of(pair->wanted);
  const bool both_made = chosen.how == trace::How::created && fixed != nullptr && fixed->how == trace::How::created &&
                         was_never_moved(pair->odd) && is_changeable(fixed->at, finding);
  const bool of_object = both_made && makes_object(fixed->at) && class_of(fixed->at) == class_of(chosen.at);
  if (!of_object || same_line(fixed->at, chosen.at) || is_weight(pair->wanted)) return std::nullopt;
  const std::string choice = choice_in(chosen.at);
  if (choice.empty() && !is_chosen(pair->odd, finding)) return std::nullopt;
  if (!choice_in(fixed->at).empty() || is_chosen(pair->wanted, finding)) return std::nullopt;
  const std::string edit = choice.empty() ? "" : with_argument(call_at(fixed->at), "device=" + choice);
  return Explanation{
      cause_at(fixed->at, pair->wanted,
               mention_first(pair->odd) + " comes from " + short_place(chosen.at) +
                   ", whose device is chosen by a setting, and is on the CPU. This line makes " +
                   mention(pair->wanted) + " on " + pair->wanted.device + " in any case, and the two meet."),
      Fix{fixed->at.file, fixed->at.line,
          "Make it where the other one is" + (edit.empty() ? "." : ": `" + edit + "`.")}};
}

}  // namespace devsan::report::why
