// Steps of histories: those of one value, and all that the process has written down so far.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// The history of a tensor; none for one that is not known, or has no storage.
inline trace::LineageId tensor_history(const c10::TensorImpl* tensor) noexcept {
  const c10::StorageImpl* storage = storage_of(tensor);
  return storage != nullptr ? origin_table().find(storage) : trace::LineageId::none;
}

// Calls `visit(id, node)` for each, the oldest first: up to some 100,000, so only where an operator has failed.
template <class Visit>
void visit_lineage_nodes(Visit visit) {
  for (std::uint32_t number = 1;; ++number) {
    const trace::LineageId id{number};
    const trace::LineageNode node = runtime.recorder->lineage(id);
    if (node.how == trace::How{}) return;
    visit(id, node);
  }
}

// Calls `visit(node)` for a step and those that it was made from, the newest first, until it says false.
template <class Visit>
void visit_steps(trace::LineageId id, Visit visit) {
  for (int steps = 0; id != trace::LineageId::none && steps <= trace::kMaxLineageDepth; ++steps) {
    const trace::LineageNode node = runtime.recorder->lineage(id);
    if (!visit(node)) return;
    id = node.parent;
  }
}

// The step that a value is of which only this is known, its parent not: where all that was made as it was has one
// history, that one; or else a step without a parent.
inline trace::LineageId step_like(const trace::LineageNode& made) {
  std::size_t count = 0;
  trace::LineageId found = trace::LineageId::none;
  visit_lineage_nodes([&](trace::LineageId id, const trace::LineageNode& node) {
    if (node.site != made.site || node.op != made.op || node.how != made.how || node.device != made.device) return;
    found = id;
    ++count;
  });
  return count == 1 ? found : runtime.recorder->add_lineage(made);
}

}  // namespace devsan::hooks
