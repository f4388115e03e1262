// What the program calls an operand: a local variable, `self.bias`, an entry of a list or dict, the parameter of a
// module.
#pragma once

#include <span>

#include "hooks/inprocess/snapshot/object_search.h"

namespace devsan::hooks {

// Fills `name` and `name_kind` of the operands that the search has found: of a view those of the tensor that is kept.
// The operator failed at `site`. With the GIL held (PythonSection).
void give_names(const ObjectSearch& search, std::span<trace::OperandRecord> records,
                std::span<const OperandIdentity> identities, trace::SiteId site);

// A tensor that no name leads to was made on the way: its name is the expression that made it, where that stands in the
// function that failed, at `site`.
void name_temporaries(std::span<trace::OperandRecord> records, trace::SiteId site) noexcept;

}  // namespace devsan::hooks
