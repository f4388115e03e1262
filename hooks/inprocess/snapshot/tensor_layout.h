// Where the Python object of a tensor keeps its TensorImpl, which differs between releases of torch.
//
// With the GIL (PythonSection). May throw std::bad_alloc.
#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>

#include "hooks/inprocess/bridge/tensor_facts.h"

namespace devsan::hooks {

class TensorLayout {
 public:
  // From operands, of which both are known.
  void learn(std::span<const OperandIdentity> identities);
  // From an object that may be a tensor.
  void learn_from(const void* object);
  bool known() const { return offset_ >= 0; }
  // The tensor that a Python object is; null where it is none, or nothing was learned.
  const c10::TensorImpl* tensor_at(const void* object) const;

 private:
  std::ptrdiff_t offset_ = -1;
  const void* base_type_ = nullptr;
  mutable std::unordered_map<const void*, bool> types_;  // whether a type is one of tensors, once it was asked
};

}  // namespace devsan::hooks
