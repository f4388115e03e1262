#include "hooks/inprocess/provenance/lineage.h"

#include <cstddef>

#include "hooks/inprocess/common/runtime.h"

namespace devsan::hooks {

trace::LineageId origin_of(trace::LineageId node) noexcept {
  for (;;) {
    const trace::LineageId parent = runtime.recorder->lineage(node).parent;
    if (parent == trace::LineageId::none) return node;
    node = parent;
  }
}

namespace {

trace::LineageId add_node(trace::LineageNode node) noexcept {
  if (node.parent != trace::LineageId::none) {
    const std::uint32_t depth = runtime.recorder->lineage(node.parent).depth;
    node.depth = static_cast<std::uint8_t>(depth + 1);
    if (depth >= trace::kMaxLineageDepth) {
      node.parent = origin_of(node.parent);
      node.depth = static_cast<std::uint8_t>(depth + 1);
    }
  }
  return runtime.recorder->add_lineage(node);
}

}  // namespace

trace::LineageId lineage_id_again(ThreadCaches* caches, const NodeWords& node) noexcept {
  static_assert(offsetof(trace::LineageNode, site) == 4 && offsetof(trace::LineageNode, op) == 8 &&
                offsetof(trace::LineageNode, device) == 10 && offsetof(trace::LineageNode, how) == 11);
  // `depth` is the low byte of the last word, and `calls` what is left of it.
  const trace::LineageId id = add_node(std::bit_cast<trace::LineageNode>(node));
  if (caches != nullptr) caches->lineage(node) = {node, id};
  return id;
}

}  // namespace devsan::hooks
