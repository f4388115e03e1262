// Collectives as functions of their group: torch's Python bindings, DDP's reducer and the functional collectives enter
// one by a virtual function of c10d::ProcessGroup, which calls an operator of c10d. Seen here, where the arguments have
// their types, the call costs a fraction of what it does in the dispatcher: for devsan to see it there, torch has to
// put arguments and results into lists of values. The operator that such a function calls is passed on there.
#pragma once

#include <span>

#include "hooks/inprocess/common/thread_state.h"
#include "hooks/torch_bridge/operand_list.h"
#include "preload/hooks_abi.h"

namespace devsan::hooks {

// The entries of the virtual table of c10d::ProcessGroup. None where a torch has no such class. Once, at attach.
std::span<const TableEntry> group_functions() noexcept;

// An operator enters the dispatcher. Whether it is the one that a group's function, which is seen, calls; that is so
// once.
bool is_of_group_call(const ThreadState& state) noexcept;

// An operator inside was refused with these operands. Whether the collective was given all of them: then it is the
// collective's finding.
bool came_with_group_call(const ThreadState& state, const OperandList& operands) noexcept;

}  // namespace devsan::hooks
