// Asks the operands of a call for a storage. Apart from operands.h: the compiler inlines less into the wrappers of
// operators where their sources hold more.
#pragma once

#include "hooks/torch_bridge/operand_list.h"

namespace devsan::hooks {

// Whether an operand lies in a storage.
class StorageSearch final : public OperandSink {
 public:
  explicit StorageSearch(const c10::StorageImpl* storage) noexcept : storage_(storage) {}
  void tensor(int, int, const c10::TensorImpl* tensor) override {
    found = found || TensorFields::storage_behind(tensor) == storage_;
  }
  void generator(int, const at::Generator&) override {}
  void device(int, c10::Device) override {}
  void storage(int, const at::Storage&) override {}
  bool found = false;

 private:
  const c10::StorageImpl* storage_;
};

// Whether operands on several devices are all numbers, or tensors in storages that `gave(storage)` knows.
template <class Gave>
bool all_given(const OperandList& operands, const Gave& gave) {
  for (const OperandIdentity& operand : operands.identities()) {
    if (operand.tensor == nullptr) return false;
    if (operand.tensor->is_wrapped_number()) continue;
    const c10::StorageImpl* const storage = TensorFields::storage_behind(operand.tensor);
    if (storage == nullptr || !gave(storage)) return false;
  }
  return operands.mixed();
}

}  // namespace devsan::hooks
