// How a value's history is written down: see trace::LineageNode.
#pragma once

#include "hooks/thread_state.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// The id of the node with the site, operator, device, `how` and parent of `node`; `caches` may be null. Where the chain
// would grow deeper than kMaxLineageDepth the node follows the chain's origin instead of its parent, so that loops come
// back to nodes they have.
trace::LineageId lineage_id(ThreadCaches* caches, const trace::LineageNode& node) noexcept;

}  // namespace devsan::hooks
