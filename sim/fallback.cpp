#include "sim/fallback.h"

#include <ATen/core/List.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "sim/capture.h"
#include "sim/device_rules.h"
#include "sim/devices.h"
#include "sim/host_alias.h"
#include "sim/host_kernels.h"
#include "sim/kernel_words.h"
#include "sim/late_copies.h"
#include "sim/layouts.h"
#include "sim/random.h"
#include "sim/wider_dtypes.h"
#include "trace/not_simulated.h"

namespace devsan::sim {
namespace {

using c10::IValue;
using torch::jit::Stack;

template <typename Visit>
void for_each_tensor(const IValue& value, Visit visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      if (tensor.defined()) visit(tensor);
    }
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      if (tensor && tensor->defined()) visit(*tensor);
    }
  }
}

// What the arguments say before anything is changed in them.
struct Operands {
  std::optional<c10::Device> device;  // of the first simulated tensor, or of the device argument without one
  bool mixed = false;                 // not all tensors are on `device`
  bool empty = false;                 // there are simulated tensors, and none has elements
  std::vector<at::Tensor> on_cpu;
  std::vector<at::Tensor> host_parts;  // of nested tensors
};

Operands look_at(at::ArrayRef<IValue> arguments) {
  Operands operands;
  for (const IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      if (!is_simulated(tensor)) {
        // A Python number that became a tensor mixes with every device.
        if (!tensor.unsafeGetTensorImpl()->is_wrapped_number()) operands.on_cpu.push_back(tensor);
        return;
      }
      operands.empty = (operands.empty || !operands.device) && tensor.numel() == 0;
      for (const at::Tensor& part : host_parts_of(tensor)) operands.host_parts.push_back(part);
      if (!operands.device) {
        operands.device = tensor.device();
      } else if (*operands.device != tensor.device()) {
        operands.mixed = true;
      }
    });
  }
  operands.mixed = operands.mixed || (operands.device && !operands.on_cpu.empty());
  if (!operands.device) {
    for (const IValue& argument : arguments) {
      if (argument.isDevice()) operands.device = resolve_device(argument.toDevice());
    }
  }
  return operands;
}

bool draws_random_numbers(const c10::OperatorHandle& op) {
  return op.hasTag(at::Tag::nondeterministic_seeded);
}

// Replaces the arguments on the stack with what the CPU kernel takes.
class HostArguments {
 public:
  HostArguments(const c10::OperatorHandle& op, Stack* stack, const Operands& operands)
      : schema_(op.schema()),
        stack_(stack),
        device_(*operands.device),
        empty_(operands.empty),
        random_(draws_random_numbers(op)) {}

  void replace(HostAliases& aliases) {
    const std::size_t count = schema_.arguments().size();
    bool has_generator = false;
    for (std::size_t index = 0; index < count; ++index) {
      IValue& value = torch::jit::peek(*stack_, index, count);
      const bool is_generator = is_generator_argument(schema_.arguments()[index]);
      has_generator = has_generator || is_generator;
      if (is_generator) {
        replace_generator(value);
      } else {
        replace_one(value, schema_.arguments()[index], aliases);
      }
    }
    if (random_ && !has_generator) host_default_.emplace(device_.index());
  }

  void write_back(HostAliases& aliases) const {
    for (const at::Tensor& tensor : written_) aliases.write_back(tensor);
  }

 private:
  static bool is_generator_argument(const c10::Argument& argument) {
    const c10::TypePtr& type = argument.type();
    if (type->kind() == c10::TypeKind::GeneratorType) return true;
    const auto optional = type->cast<c10::OptionalType>();
    return optional && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
  }

  void replace_generator(IValue& value) {
    std::optional<at::Generator> given;
    if (!value.isNone()) given = value.toGenerator();
    // CUDA's kernels return before they ask which device the generator is of.
    if (given && empty_ && given->device().is_cpu()) return;
    if (given || random_) value = host_generator(given, device_.index());
  }

  at::Tensor to_host(const at::Tensor& tensor, bool is_written, HostAliases& aliases) {
    if (!is_simulated(tensor)) return tensor;
    if (is_written) written_.push_back(tensor);
    return aliases.alias(tensor);
  }

  void replace_one(IValue& value, const c10::Argument& argument, HostAliases& aliases) {
    const bool is_written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    if (value.isTensor()) {
      value = to_host(value.toTensor(), is_written, aliases);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(to_host(tensor, is_written, aliases));
      value = std::move(list);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        list.push_back(tensor ? std::optional(to_host(*tensor, is_written, aliases)) : std::nullopt);
      }
      value = std::move(list);
    } else if (value.isDevice() && value.toDevice().type() == kSimulatedType) {
      value = c10::Device(c10::DeviceType::CPU);
    }
  }

  const c10::FunctionSchema& schema_;
  Stack* stack_;
  c10::Device device_;
  bool empty_;
  bool random_;
  std::vector<at::Tensor> written_;
  std::optional<HostDefaultGenerator> host_default_;
};

// An operand that was on the CPU is returned as it is, and so is a view of it.
bool stays_on_cpu(const at::Tensor& result, const Operands& operands) {
  const auto belongs_to = [&](const at::Tensor& operand) {
    if (operand.is_same(result)) return true;
    return operand.has_storage() && result.has_storage() && operand.storage().is_alias_of(result.storage());
  };
  return std::ranges::any_of(operands.on_cpu, belongs_to) || std::ranges::any_of(operands.host_parts, belongs_to);
}

at::Tensor to_simulated(const at::Tensor& result, const Operands& operands, HostAliases& aliases) {
  if (!result.defined() || stays_on_cpu(result, operands)) return result;
  return aliases.simulated(result, *operands.device);
}

void replace_results(const c10::OperatorHandle& op, Stack* stack, const Operands& operands, HostAliases& aliases) {
  const std::size_t count = op.schema().returns().size();
  for (std::size_t index = 0; index < count; ++index) {
    IValue& value = torch::jit::peek(*stack, index, count);
    if (value.isTensor()) {
      value = to_simulated(value.toTensor(), operands, aliases);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(to_simulated(tensor, operands, aliases));
      value = std::move(list);
    }
  }
}

// Dense, sparse, nested and quantized tensors have kernels of their own.
constexpr c10::DispatchKey kFallbackKeys[] = {c10::DispatchKey::CUDA, c10::DispatchKey::SparseCUDA,
                                              c10::DispatchKey::SparseCsrCUDA, c10::DispatchKey::NestedTensorCUDA,
                                              c10::DispatchKey::QuantizedCUDA};

c10::DispatchKey functionality_of(c10::DispatchKeySet keys) {
  const c10::DispatchKey functionality = c10::toFunctionalityKey(keys.highestPriorityTypeId());
  return c10::isPerBackendFunctionalityKey(functionality) ? functionality : c10::DispatchKey::Dense;
}

// A composite kernel is preferred to a fallback. That of a structured operator would only lead to the fallback through
// a second operator; others compute by another formula than the kernels of the CPU, or look for kernels of CUDA.
bool is_bound_to_fallback(const c10::OperatorHandle& op, c10::DispatchKey functionality) {
  static const auto* dense =
      new std::unordered_set<std::string>{"aten::conj_physical_", "aten::mish_backward", "aten::mode.values"};
  const std::string name = c10::toString(op.operator_name());
  if (functionality != c10::DispatchKey::Dense) {
    return name == "aten::copy_" || op.hasKernelForDispatchKey(c10::toRuntimePerBackendFunctionalityKey(
                                        functionality, c10::BackendComponent::CPUBit));
  }
  if (dense->contains(name)) return true;
  if (!op.hasKernelForDispatchKey(c10::DispatchKey::CPU)) return false;
  return is_structured(op) || op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
}

void bind_operators(torch::Library& aten, c10::DispatchKey key) {
  auto& dispatcher = c10::Dispatcher::singleton();
  const c10::DispatchKey functionality = c10::toFunctionalityKey(key);
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const std::optional<c10::OperatorHandle> op = dispatcher.findSchema(name);
    if (!op || !is_bound_to_fallback(*op, functionality)) continue;
    aten.impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
  }
}

struct HostKernel {
  c10::DispatchKey key;
  const c10::KernelFunction* own;  // of sim/host_kernels.h; null where the CPU has one
};

HostKernel host_kernel_of(const c10::OperatorHandle& op, c10::DispatchKey functionality) {
  const c10::DispatchKey key = c10::toRuntimePerBackendFunctionalityKey(functionality, c10::BackendComponent::CPUBit);
  if (op.hasComputedKernelForDispatchKey(key)) return {key, nullptr};
  const c10::KernelFunction* own = find_host_kernel(op);
  TORCH_CHECK_NOT_IMPLEMENTED(own != nullptr, trace::kNotSimulated, "the operator ", op.operator_name(),
                              ": PyTorch has no ", key, " kernel for it");
  return {key, own};
}

void run_kernel(const HostKernel& kernel, const c10::OperatorHandle& op, Stack* stack) {
  const c10::DispatchKeySet keys(kernel.key);
  try {
    if (kernel.own != nullptr) {
      kernel.own->callBoxed(op, keys, stack);
    } else if (const std::optional<at::ScalarType> wide = wider_dtype(op, *stack)) {
      call_in(*wide, op, keys, stack);
    } else {
      op.redispatchBoxed(keys, stack);
    }
  } catch (const c10::Error& error) {
    rethrow_as_cuda(op, error);
  }
}

}  // namespace

void run_on_host(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  run_on_host_after(nullptr, op, keys, stack);
}

void run_on_host_after(ArgumentCheck check, const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const c10::DispatchKey functionality = functionality_of(keys);
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  Operands operands = look_at(arguments);
  check_context();
  if (operands.mixed && check_operand_devices(op, functionality, arguments) == Verdict::run_composite) {
    run_composite_kernel(op, stack);
    return;
  }
  if (check != nullptr) check(op, arguments);
  const HostKernel kernel = host_kernel_of(op, functionality);
  if (!operands.device) {
    // Only a generator can have led here.
    TORCH_CHECK(operands.on_cpu.empty(), "Expected a 'cpu' device type for generator but found 'cuda'");
    operands.device = c10::Device(kSimulatedType, current_device());
  }
  std::optional<CapturedCall> captured;
  if (is_capturing()) captured.emplace(op, keys, *stack);
  if (copies_are_late() && has_to_wait(op, *stack)) host_waits_for(*operands.device);
  HostAliases aliases;
  HostArguments host(op, stack, operands);
  host.replace(aliases);
  run_kernel(kernel, op, stack);
  host.write_back(aliases);
  replace_results(op, stack, operands, aliases);
  if (captured) captured->returned(*stack);
}

void register_fallback() {
  static auto* libraries = new std::vector<torch::Library>();  // a registration lasts as long as its library
  for (const c10::DispatchKey key : kFallbackKeys) {
    torch::Library& backend = libraries->emplace_back(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
    backend.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
    bind_operators(libraries->emplace_back(torch::Library::IMPL, "aten", key, __FILE__, __LINE__), key);
  }
}

}  // namespace devsan::sim
