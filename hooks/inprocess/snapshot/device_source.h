// What is made on the device of a tensor, as by `torch.zeros(n, device=ids.device)`, is where that tensor is: if that
// is wrong, the mistake is in the history of the tensor. While operators run nobody knows which tensor a device was
// taken from; once one has failed the source of the call tells, as long as a function that has the tensor still runs.
#pragma once

#include <span>

#include "hooks/inprocess/snapshot/object_search.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// Puts the histories of such tensors behind those of the operands that were made on their devices.
//
// With the GIL (PythonSection); runs no code of the program. May throw std::bad_alloc.
void follow_device_sources(const ObjectSearch& search, const void* innermost, std::span<trace::OperandRecord> operands);

}  // namespace devsan::hooks
