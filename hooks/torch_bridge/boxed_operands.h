// The operands among the arguments of a call that come as a list of c10::IValue: what operands.h does for typed
// arguments.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <array>

#include "hooks/torch_bridge/operands.h"

namespace devsan::hooks {

using BoxedArguments = c10::ArrayRef<const c10::IValue>;

// What one pass over the arguments has seen, and what has to outlive them: a kernel may take its arguments off the
// stack, and end them, before the call returns.
struct BoxedOperands {
  Operands seen;
  bool differ = false;  // more than one device, counting what PyTorch may take beside others: scalars, generators,
                        // the device argument
  std::array<const c10::StorageImpl*, 8> storages{};  // of the tensors; their addresses are all that may be used later
  std::size_t storage_count = 0;
  bool has_more_storages = false;

  explicit BoxedOperands(BoxedArguments arguments) noexcept;
  bool has_storage(const c10::StorageImpl* storage) const noexcept;
  // The same for the storage of a result; where not all could be kept, of any that is not new.
  bool may_have_storage(const c10::StorageImpl* storage) const noexcept;

 private:
  void look(const c10::IValue& value) noexcept;
  void look_at_tensor(const c10::TensorImpl* tensor) noexcept;
  void look_at_device(DeviceKey device) noexcept;

  DeviceKey first_device_ = 0;
};

void enumerate_boxed(OperandSink& sink, BoxedArguments arguments);

}  // namespace devsan::hooks
