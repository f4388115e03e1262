// Factories make their tensors on the CPU unless they are told otherwise. Proposed only for a factory in code of the
// user's own that names no device, and for a value that was never moved since: otherwise somebody chose the CPU.
#include "report/operands.h"
#include "report/why/rule.h"
#include "report/why/wording.h"

namespace devsan::report::why {

std::optional<Explanation> made_without_device(const Finding& finding) {
  const Operand* odd = first_odd(finding.operands);
  if (odd == nullptr || !odd->on_cpu() || odd->lineage.empty() || was_moved(*odd)) return std::nullopt;
  const LineageStep& origin = odd->lineage.back();
  const bool own_code = !origin.at.file.empty() && !origin.at.library;
  if (origin.how != trace::How::created || !own_code || origin.at.source.find("device") != std::string::npos) {
    return std::nullopt;
  }
  const Operand* tensor = counterpart_of(*odd, finding.operands);
  if (tensor == nullptr) return std::nullopt;

  std::string text = mention_first(*odd) +
                     " begins in this line, on the CPU because no device is given: pass `device=` (" + tensor->device +
                     " here)";
  if (finding.where && (finding.where->file != origin.at.file || finding.where->line != origin.at.line)) {
    text += ", or move it where it is used, in " + short_place(*finding.where) + ": `" + move_call(*odd, *tensor) + "`";
  }
  return Explanation{std::nullopt, Fix{origin.at.file, origin.at.line, text + "."}};
}

}  // namespace devsan::report::why
