// `ids = self.tokenizer.encode(values)`, and `ids = ids.to(device)` behind it: that call works on the host, with tables
// of its own, and its caller takes the result over. What it is given has come to the accelerator too early.
#include "report/frames.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// `rows = self.table[picked]`: the table alone makes the result, and that is moved.
bool picks(const Operand& operand) {
  return operand.arg.starts_with("indices") || operand.arg == "index";
}

}  // namespace

std::optional<Explanation> given_to_host_function(const Finding& finding) {
  const auto pair = pair_of(finding);
  if (!pair || !pair->odd.on_cpu() || !on_accelerator(pair->wanted) || is_weight(pair->wanted)) return std::nullopt;
  const Evidence* moved = place_of(pair->odd, trace::EvidenceKind::result_moved_at, finding);
  const bool own = evidence_of(pair->odd, trace::EvidenceKind::held_by_object) != nullptr;
  if (moved == nullptr || !own || !was_never_moved(pair->odd)) return std::nullopt;
  // What the failing line computes of both may be moved behind it for whatever reason.
  if (same_function(moved->at, *finding.where) && !picks(pair->wanted)) return std::nullopt;
  const LineageStep* arrival = arrival_of(pair->wanted);
  if (arrival == nullptr || !is_changeable(arrival->at, finding) || moves_module(*arrival)) return std::nullopt;
  const bool brought = arrival->how == trace::How::moved;
  return Explanation{
      cause_at(arrival->at, pair->wanted,
               "This line puts " + std::string(&pair->wanted.lineage.front() == arrival ? "" : "what ") +
                   mention(pair->wanted) + (&pair->wanted.lineage.front() == arrival ? "" : " is computed from") +
                   " on " + spoken_device(pair->wanted.device) + ". `" + finding.where->function +
                   "` works on the host, with `" + pair->odd.name + "`: " + short_place(moved->at) +
                   " takes what comes of it, `" + moved->text + "`, to an accelerator."),
      Fix{arrival->at.file, arrival->at.line,
          std::string(brought ? "Leave it" : "Make it") + " on the CPU here: its result is moved later."}};
}

}  // namespace devsan::report::why
