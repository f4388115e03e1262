// How a value's history is written down: see trace::LineageNode.
#pragma once

#include <bit>

#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/provenance/thread_caches.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// A node without its depth; `calls` as callers() gives it. Put together in registers: a node written field by field and
// read back by words would have to wait for its own stores.
inline NodeWords node_words(trace::LineageId parent, trace::SiteId site, trace::OperatorId op, trace::DeviceSlot device,
                            trace::How how, std::uint32_t calls) noexcept {
  static_assert(std::endian::native == std::endian::little);
  return {std::uint64_t(parent) | std::uint64_t(site) << 32,
          std::uint64_t(op) | std::uint64_t(device) << 16 | std::uint64_t(how) << 24 | std::uint64_t(calls) << 40};
}

// lineage_id(), past the cache.
[[gnu::cold]] trace::LineageId lineage_id_again(ThreadCaches* caches, const NodeWords& node) noexcept;

// The id of a node; `caches` may be null. Where the chain would grow deeper than kMaxLineageDepth the node follows the
// chain's origin instead of its parent, so that loops come back to nodes they have.
inline trace::LineageId lineage_id(ThreadCaches* caches, const NodeWords& node) noexcept {
  if (caches != nullptr) [[likely]] {
    const LineageMemo& memo = caches->lineage(node);
    if (memo.node == node && memo.id != trace::LineageId::none) [[likely]]
      return memo.id;
  }
  return lineage_id_again(caches, node);
}

// The same; `memo` of the innermost frame is asked before the cache, and may be null.
inline trace::LineageId lineage_id(ThreadCaches* caches, FrameMemo* memo, const NodeWords& node) noexcept {
  if (memo == nullptr) return lineage_id(caches, node);
  if (memo->node == node && memo->lineage != trace::LineageId::none) [[likely]]
    return memo->lineage;
  memo->node = node;
  return memo->lineage = lineage_id(caches, node);
}

// The node that a node's chain begins with.
trace::LineageId origin_of(trace::LineageId node) noexcept;

}  // namespace devsan::hooks
