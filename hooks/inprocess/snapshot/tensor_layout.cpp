#include "hooks/inprocess/snapshot/tensor_layout.h"

#include "hooks/inprocess/bridge/tensor_objects.h"
#include "hooks/inprocess/interpreter/python_api.h"

namespace devsan::hooks {

void TensorLayout::learn(std::span<const OperandIdentity> identities) {
  for (const OperandIdentity& known : identities) {
    if (known.object == nullptr || known.tensor == nullptr) continue;
    for (std::ptrdiff_t offset = 16; offset <= 32; offset += 8) {
      if (field<const void*>(known.object, offset) == known.tensor) offset_ = offset;
    }
    if (offset_ < 0) continue;
    base_type_ = base_tensor_type(type_of(known.object));
    return;
  }
}

void TensorLayout::learn_from(const void* object) {
  if (!types_.try_emplace(type_of(object), false).second) return;
  const std::ptrdiff_t offset = tensor_offset_in(object);
  if (offset < 0) return;
  offset_ = offset;
  base_type_ = base_tensor_type(type_of(object));
  types_.clear();
}

const c10::TensorImpl* TensorLayout::tensor_at(const void* object) const {
  if (object == nullptr || offset_ < 0 || base_type_ == nullptr) return nullptr;
  const auto [known, is_new] = types_.try_emplace(type_of(object), false);
  if (is_new) known->second = base_tensor_type(type_of(object)) == base_type_;
  return known->second ? field<const c10::TensorImpl*>(object, offset_) : nullptr;
}

}  // namespace devsan::hooks
