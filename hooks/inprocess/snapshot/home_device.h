// The accelerator that a function works on: the one that it is told, that of the module it works for, or the one of
// what it was given.
//
// With the GIL (PythonSection); bounded; runs no code of the program. May throw std::bad_alloc.
#pragma once

#include <span>

#include "hooks/inprocess/snapshot/object_search.h"

namespace devsan::hooks {

// Marks the operands (trace::kAtHome) that are on the accelerator that the failing function works on, if that is one.
void mark_home(const ObjectSearch& search, const void* innermost, std::span<trace::OperandRecord> records,
               std::span<const OperandIdentity> identities);

}  // namespace devsan::hooks
