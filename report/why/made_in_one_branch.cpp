// A function gives its value from one of two lines: one computes it from what is on an accelerator, the other makes it,
// where nobody says a device. What comes of both meets later.
#include "report/frames.h"
#include "report/why/edit.h"
#include "report/why/history.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {
namespace {

// Made by a factory that names no device, in a function that has returned since.
const LineageStep* made_on_cpu(const Operand& operand, const Finding& finding) {
  if (!operand.on_cpu() || operand.lineage.empty() || operand.is_scalar()) return nullptr;
  const LineageStep& made = operand.lineage.back();
  const bool fresh = made.how == trace::How::created && made.device == operand.device;
  const bool apart = made.at.function != "<module>" && !is_constructor(made.at) && !is_running(made.at, finding);
  return fresh && apart && is_changeable(made.at, finding) && !names_device(made.at) ? &made : nullptr;
}

// The newest step of a value that another line of that function computed on an accelerator.
const LineageStep* computed_beside(const LineageStep& made, const Finding& finding) {
  for (const Operand& other : finding.operands) {
    if (!on_accelerator(other) || other.lineage.empty()) continue;
    const LineageStep& newest = other.lineage.front();
    const bool computed = newest.how == trace::How::derived && newest.device == other.device;
    if (computed && same_function(newest.at, made.at) && !same_line(newest.at, made.at)) return &newest;
  }
  return nullptr;
}

}  // namespace

std::optional<Explanation> made_in_one_branch(const Finding& finding) {
  if (!finding.where) return std::nullopt;
  for (const Operand& operand : finding.operands) {
    const LineageStep* made = made_on_cpu(operand, finding);
    const LineageStep* beside = made != nullptr ? computed_beside(*made, finding) : nullptr;
    // One that a mover has handed back as it was is to be moved there.
    if (beside == nullptr || evidence_of(operand, trace::EvidenceKind::passed_over_at) != nullptr) continue;
    const std::string call = call_at(made->at);
    const std::string edit = call.empty() ? "" : with_argument(call, "device='" + beside->device + "'");
    return Explanation{
        cause_at(made->at, operand,
                 "`" + made->at.function + "` makes a value here, on the CPU because no device is given; in " +
                     short_place(beside->at) + " it computes one on " + beside->device + ". The two meet."),
        Fix{made->at.file, made->at.line,
            "Make it where the other one is" + (edit.empty() ? std::string() : ": `" + edit + "`") + "."}};
  }
  return std::nullopt;
}

}  // namespace devsan::report::why
