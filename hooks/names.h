// What the program calls an operand: a local variable, `self.bias`, an entry of a list or dict, the parameter of a
// module. Searches the objects that the Python frames hold, breadth first, so that the shortest name wins.
//
// Runs no code of the program (no attribute protocol, no __eq__, no __repr__), keeps no reference, and looks at a
// bounded number of objects. With the GIL held (PythonSection).
#pragma once

#include <span>

#include "hooks/operand_list.h"

namespace devsan::hooks {

// Fills `name` and `name_kind` of the operands it finds, from the frames of `thread` (a PyThreadState).
void find_names(const void* thread, std::span<trace::OperandRecord> records,
                std::span<const OperandIdentity> identities) noexcept;

}  // namespace devsan::hooks
