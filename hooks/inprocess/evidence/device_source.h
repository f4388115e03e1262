// What is made on the device of a tensor, as by `torch.zeros(n, device=ids.device)`, is where that tensor is: if that
// is wrong, the mistake is in the history of the tensor. While operators run nobody knows which tensor a device was
// taken from; once one has failed the source of the call tells, as long as a function that has the tensor still runs.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "hooks/inprocess/snapshot/object_search.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// "x" of `torch.arange(n, device=x.device)`; empty for other calls. Needs no interpreter.
std::string device_owner(std::string_view call);

// The tensor that a call asked for its device, as `path`: what that means now.
struct DeviceOwner {
  const void* object = nullptr;  // null where it cannot be reached
  const c10::TensorImpl* tensor = nullptr;
  std::string path;
};
// Of the call that made the value of a step. With the GIL (PythonSection); runs no code of the program. May throw
// std::bad_alloc.
DeviceOwner asked_for_device(const ObjectSearch& search, const void* innermost, const trace::LineageNode& made);

// The tensor that the value which a step made has its device from; null where it cannot be reached, or is a weight.
//
// With the GIL (PythonSection); runs no code of the program. May throw std::bad_alloc.
const c10::TensorImpl* device_source(const ObjectSearch& search, const void* innermost, const trace::LineageNode& made);

// Puts the histories of such tensors behind those of the operands that were made on their devices.
//
// With the GIL (PythonSection); runs no code of the program. May throw std::bad_alloc.
void follow_device_sources(const ObjectSearch& search, const void* innermost, std::span<trace::OperandRecord> operands);

}  // namespace devsan::hooks
