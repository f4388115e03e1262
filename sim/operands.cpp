#include "sim/operands.h"

#include <ATen/core/stack.h>

#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/host_alias.h"
#include "sim/with_tensors.h"

namespace devsan::sim {
namespace {

using c10::IValue;

void append(std::vector<Operand>& operands, const c10::Argument& argument, const IValue& value) {
  if (value.isTensor()) {
    operands.push_back({&argument, value.toTensor()});
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) operands.push_back({&argument, tensor});
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      if (tensor) operands.push_back({&argument, *tensor});
    }
  }
}

// A tensor met twice gives the same copy twice.
class HostCopies {
 public:
  at::Tensor of(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    at::Tensor& copy = copies_[tensor.unsafeGetTensorImpl()];
    if (!copy.defined()) copy = (is_simulated(tensor) ? aliases_.alias(tensor) : tensor).clone();
    return copy;
  }

 private:
  HostAliases aliases_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> copies_;
};

}  // namespace

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

bool is_output(const c10::Argument& argument) {
  return argument.kwarg_only() && is_written(argument);
}

Call call_of(const c10::OperatorHandle& op, at::ArrayRef<IValue> arguments) {
  Call call{op, arguments, {}};
  for (const bool outputs : {true, false}) {
    for (std::size_t index = 0; index < arguments.size(); ++index) {
      const c10::Argument& argument = op.schema().arguments()[index];
      if (is_output(argument) == outputs) append(call.operands, argument, arguments[index]);
    }
  }
  std::erase_if(call.operands, [](const Operand& operand) { return !operand.tensor.defined(); });
  return call;
}

const at::Tensor* find_operand(const std::vector<Operand>& operands, std::string_view argument) {
  for (const Operand& operand : operands) {
    if (operand.argument->name() == argument) return &operand.tensor;
  }
  return nullptr;
}

const IValue* find_argument(const c10::FunctionSchema& schema, at::ArrayRef<IValue> arguments,
                            std::string_view argument) {
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    if (schema.arguments()[index].name() == argument) return &arguments[index];
  }
  return nullptr;
}

void raise_errors_of_shape(const Call& call) {
  HostCopies copies;
  torch::jit::Stack stack;
  for (const IValue& argument : call.arguments) {
    stack.push_back(with_tensors(argument, [&](const at::Tensor& tensor) { return copies.of(tensor); }));
  }
  call.op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
}

}  // namespace devsan::sim
