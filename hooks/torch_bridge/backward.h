// What the hooks know of autograd: which thread runs a backward, and which line made the node that runs.
#pragma once

#include <cstdint>

#include "hooks/inprocess/common/often_read.h"
#include "hooks/inprocess/common/thread_state.h"

namespace devsan::hooks {

// After an outermost operator that made autograd nodes: remembers its site for them, and counts an iteration when this
// is the first forward operator after a backward.
DEVSAN_OFTEN_RUN void note_autograd_nodes(ThreadState& state, trace::OperatorId op) noexcept;

// The site and operator that made the autograd node running on this thread; `none` where it is not known (any more).
struct ForwardOrigin {
  trace::SiteId site = trace::SiteId::none;
  trace::OperatorId op = trace::OperatorId::none;
};
ForwardOrigin forward_origin(const ThreadState& state) noexcept;
// The same of a torch::autograd::Node.
ForwardOrigin forward_origin_of(const void* node) noexcept;

// "autograd::MulBackward0" for the node running on this thread; none outside a backward.
trace::OperatorId running_node(const ThreadState& state) noexcept;

// Where the backward in progress was called from, for threads of the autograd engine, which have no Python frames;
// none when several are in progress.
trace::SiteId backward_call_site() noexcept;

}  // namespace devsan::hooks
