// The accelerator that a function works on, by what it was given.
//
// With the GIL (PythonSection); bounded; runs no code of the program. May throw std::bad_alloc.
#pragma once

#include <span>

#include "hooks/object_search.h"

namespace devsan::hooks {

// Marks the operands (trace::kAtHome) that are where all other arguments of the failing function are, if that is one
// accelerator.
void mark_home(const ObjectSearch& search, const void* innermost, std::span<trace::OperandRecord> records,
               std::span<const OperandIdentity> identities);

}  // namespace devsan::hooks
