// Asks the operands of a call for a storage. Apart from operands.h: the compiler inlines less into the wrappers of
// operators where their sources hold more.
#pragma once

#include "hooks/torch_bridge/operands.h"

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

}  // namespace devsan::hooks
