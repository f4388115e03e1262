// The history of an operand beside the source of the lines that made it.
#pragma once

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/source/file_lines.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// Calls `visit(node, made, lines)` for the steps since the operand came to its device, the newest first, until it says
// false: `made` is the program's line, `lines` those of its file. Ends where a line is not known. May throw
// std::bad_alloc.
template <class Visit>
void visit_history(const trace::OperandRecord& operand, Visit visit) {
  constexpr int kMaxSteps = 8;
  FileLines files;
  trace::LineageId id = operand.lineage;
  for (int steps = 0; id != trace::LineageId::none && steps < kMaxSteps; ++steps) {
    const trace::LineageNode node = runtime.recorder->lineage(id);
    const trace::Position made = runtime.recorder->site(node.site).user;
    if (node.device != operand.device || made.file == trace::StringId::none) return;
    if (!visit(node, made, files.of(made.file)) || node.how != trace::How::derived) return;
    id = node.parent;
  }
}

}  // namespace devsan::hooks
