#include "hooks/lineage.h"

#include <cstring>

#include "hooks/runtime.h"
#include "hooks/thread_caches.h"

namespace devsan::hooks {

namespace {

trace::LineageId origin_of(trace::LineageId node) noexcept {
  for (;;) {
    const trace::LineageId parent = runtime.recorder->lineage(node).parent;
    if (parent == trace::LineageId::none) return node;
    node = parent;
  }
}

trace::LineageId add_node(trace::LineageNode node) noexcept {
  if (node.parent != trace::LineageId::none) {
    const std::uint8_t depth = runtime.recorder->lineage(node.parent).depth;
    node.depth = static_cast<std::uint8_t>(depth + 1);
    if (depth >= trace::kMaxLineageDepth) {
      node.parent = origin_of(node.parent);
      node.depth = 1;
    }
  }
  return runtime.recorder->add_lineage(node);
}

}  // namespace

trace::LineageId lineage_id(ThreadCaches* caches, const trace::LineageNode& node) noexcept {
  if (caches == nullptr) return add_node(node);
  LineageMemo& memo = caches->lineage(node);
  if (std::memcmp(&memo.node, &node, sizeof node) == 0 && memo.id != trace::LineageId::none) [[likely]]
    return memo.id;
  memo = {node, add_node(node)};
  return memo.id;
}

}  // namespace devsan::hooks
