// What Python's objects tell of the operands of a call: what they are called, and what holds them.
#pragma once

#include "hooks/inprocess/snapshot/facts.h"
#include "hooks/torch_bridge/operand_list.h"

namespace devsan::hooks {

// Fills in names of operands, completes their histories and gathers facts, from the frames that made the call at
// `site`, `innermost` and those outside it. `waited_for`: a PyThreadState whose frames know little of the program,
// which waits for it in other threads, as for one of autograd's; null where its own frames tell all. With the GIL held
// (PythonSection). What needs more memory than there is stays unknown.
void examine(const void* innermost, const void* waited_for, trace::SiteId site, OperandList& operands,
             Facts& facts) noexcept;

// The names alone, for operands that nothing refused.
void find_names(const void* thread, trace::SiteId site, OperandList& operands) noexcept;

}  // namespace devsan::hooks
