// The tensor or device that a Python object is, without an operand to learn the layout of such objects from.
#pragma once

#include <cstddef>

#include "hooks/inprocess/bridge/tensor_facts.h"

namespace devsan::hooks {

// torch._C.TensorBase, the type below all tensors, that defines the layout; null for any other type.
const void* base_tensor_type(const void* type) noexcept;

// Where in a tensor's object its c10::TensorImpl is, in bytes: the word that is the address of something that has the
// object for its own. -1 where there is none, or the object is no tensor.
std::ptrdiff_t tensor_offset_in(const void* object) noexcept;

// Null for an object that is no tensor. With the GIL.
const c10::TensorImpl* tensor_of(const void* object) noexcept;

// The device that a torch.device names; 0 for any other object.
DeviceKey device_in(const void* object) noexcept;

// The device of a c10::GeneratorImpl.
DeviceKey device_of_generator(const void* generator) noexcept;

}  // namespace devsan::hooks
