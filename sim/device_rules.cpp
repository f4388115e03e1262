#include "sim/device_rules.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/core/stack.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace devsan::sim {
namespace {

using c10::IValue;

// A defined tensor of the call, and the argument that it came in. CUDA's checks see outputs before inputs.
struct Operand {
  const c10::Argument* argument;
  at::Tensor tensor;
};

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

bool is_output(const c10::Argument& argument) {
  return argument.kwarg_only() && is_written(argument);
}

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

std::vector<Operand> operands_in_check_order(const c10::FunctionSchema& schema, at::ArrayRef<IValue> values) {
  std::vector<Operand> operands;
  for (const bool outputs : {true, false}) {
    for (std::size_t index = 0; index < values.size(); ++index) {
      const c10::Argument& argument = schema.arguments()[index];
      if (is_output(argument) == outputs) append(operands, argument, values[index]);
    }
  }
  std::erase_if(operands, [](const Operand& operand) { return !operand.tensor.defined(); });
  return operands;
}

// ---- the names that PyTorch's code generator gives to CUDA's wrappers, and that its messages repeat

std::string unqualified(const c10::FunctionSchema& schema) {
  const std::string& name = schema.name();
  const std::size_t colons = name.rfind("::");
  return colons == std::string::npos ? name : name.substr(colons + 2);
}

std::string wrapper_name(const c10::FunctionSchema& schema, c10::DispatchKey functionality, bool structured) {
  bool has_output = false;
  for (const c10::Argument& argument : schema.arguments()) has_output = has_output || is_output(argument);
  const std::string name = unqualified(schema) + (has_output ? "_out" : "");
  const std::string& overload = schema.overload_name();
  if (functionality != c10::DispatchKey::Dense) {
    const c10::DispatchKey key =
        c10::toRuntimePerBackendFunctionalityKey(functionality, c10::BackendComponent::CUDABit);
    return std::string("wrapper_") + c10::toString(key) + "_" + overload + "_" + name;
  }
  if (structured) return "wrapper_CUDA_" + name + (overload.empty() ? "" : "_" + overload);
  return "wrapper_CUDA_" + overload + "_" + name;
}

// ---- the rules

bool is_number(const at::Tensor& tensor) {
  return tensor.dim() == 0;
}

// TensorIterator compares with the first operand that is not on the CPU.
std::optional<c10::Device> iterator_device(const std::vector<Operand>& operands) {
  for (const Operand& operand : operands) {
    if (!operand.tensor.is_cpu()) return operand.tensor.device();
  }
  return std::nullopt;
}

[[noreturn]] void raise_two_devices(c10::Device common, c10::Device other) {
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ", common, " and ",
              other, "!");
}

void check_iterator(const std::vector<Operand>& operands) {
  const std::optional<c10::Device> common = iterator_device(operands);
  for (const Operand& operand : operands) {
    if (common && operand.tensor.device() != *common) raise_two_devices(*common, operand.tensor.device());
  }
}

void check_iterator_scalar(const std::vector<Operand>& operands) {
  const std::optional<c10::Device> common = iterator_device(operands);
  int numbers = 0;
  for (const Operand& operand : operands) {
    if (!common || operand.tensor.device() == *common) continue;
    const bool is_cpu_number = is_number(operand.tensor) && operand.tensor.is_cpu() && !is_written(*operand.argument);
    if (!is_cpu_number) raise_two_devices(*common, operand.tensor.device());
    TORCH_CHECK(++numbers <= 1, "Trying to pass too many CPU scalars to non-CPU kernel!");
  }
}

// `where` moves its 0-dim operands to the device of the result before it iterates.
void check_where(const std::vector<Operand>& operands) {
  const std::optional<c10::Device> common = iterator_device(operands);
  for (const Operand& operand : operands) {
    if (!common || operand.tensor.device() == *common) continue;
    if (is_output(*operand.argument) || !is_number(operand.tensor)) raise_two_devices(*common, operand.tensor.device());
  }
}

const at::Tensor* find_operand(const std::vector<Operand>& operands, std::string_view argument) {
  for (const Operand& operand : operands) {
    if (operand.argument->name() == argument) return &operand.tensor;
  }
  return nullptr;
}

void check_masked_fill(const std::vector<Operand>& operands) {
  const at::Tensor* self = find_operand(operands, "self");
  const at::Tensor* mask = find_operand(operands, "mask");
  const at::Tensor* value = find_operand(operands, "value");
  TORCH_CHECK(value == nullptr || self->is_cuda(), "masked_fill_: Expected inputs to be on same device");
  TORCH_CHECK(self->device() == mask->device(), "expected self and mask to be on the same device, but got mask on ",
              mask->device(), " and self on ", self->device());
}

// Indices are moved to `self`, and so is a single value.
void check_index_put(const std::vector<Operand>& operands) {
  const at::Tensor* self = find_operand(operands, "self");
  const at::Tensor* values = find_operand(operands, "values");
  if (values == nullptr || is_number(*values) || values->device() == self->device()) return;
  raise_two_devices(self->is_cpu() ? values->device() : self->device(),
                    self->is_cpu() ? self->device() : values->device());
}

void check_any(const std::vector<Operand>&) {}

// ---- what a kernel refuses of the numbers that its meta function has let pass

// CUDA's loops read the device's memory alone, which they assert; the names are those of torch's own builds.
void check_loop_but(const std::vector<Operand>& operands, std::string_view number) {
  for (std::size_t position = 0; position < operands.size(); ++position) {
    const Operand& operand = operands[position];
    TORCH_CHECK(
        !operand.tensor.is_cpu() || operand.argument->name() == number,
        "iter.device(arg).is_cuda() INTERNAL ASSERT FAILED at "
        "\"/__w/pytorch/pytorch/aten/src/ATen/native/cuda/Loops.cuh\":119, please report a bug to PyTorch. argument ",
        position, ": expected a CUDA device but found ", operand.tensor.device());
  }
}

void check_loop(const std::vector<Operand>& operands) {
  check_loop_but(operands, "");
}

void check_lerp(const std::vector<Operand>& operands) {
  check_loop_but(operands, "weight");
}

void check_addcmul(const std::vector<Operand>& operands) {
  TORCH_CHECK(!find_operand(operands, "self")->is_cpu(),
              "CPU Scalar support for self argument is not supported when calling addcmul on CUDA tensors.");
  TORCH_CHECK(
      !find_operand(operands, "tensor1")->is_cpu(),
      "CPU Scalar support for tensor1 argument is not supported when calling addcmul on CUDA tensors. However, CPU "
      "Scalar support for tensor2 is supported, please swap your tensor1 and tensor2 terms.");
}

void check_mse_loss(const std::vector<Operand>& operands) {
  const c10::Device self = find_operand(operands, "self")->device();
  const c10::Device target = find_operand(operands, "target")->device();
  if (self != target) raise_two_devices(self, target);
}

using Check = void (*)(const std::vector<Operand>&);

const std::unordered_map<std::string, Check>& kernel_checks() {
  static const auto* all = new std::unordered_map<std::string, Check>{
#define DEVSAN_KERNEL_RULE(name, rule) {name, &check_##rule},
#include "sim/kernel_rules.def"
#undef DEVSAN_KERNEL_RULE
  };
  return *all;
}

const std::unordered_map<std::string, Check>& checks() {
  static const auto* all = new std::unordered_map<std::string, Check>{
#define DEVSAN_DEVICE_RULE(name, rule) {name, &check_##rule},
#include "sim/device_rules.def"
#undef DEVSAN_DEVICE_RULE
  };
  return *all;
}

const std::unordered_set<std::string>& unchecked_operators() {
  static const auto* all = new std::unordered_set<std::string>{
#define DEVSAN_UNCHECKED_OPERATOR(name) name,
#include "sim/unchecked_operators.def"
#undef DEVSAN_UNCHECKED_OPERATOR
  };
  return *all;
}

void check_same_device(const std::vector<Operand>& operands, const std::string& wrapper) {
  std::optional<c10::Device> common;
  for (const Operand& operand : operands) {
    const char* argument = operand.argument->name().c_str();
    c10::impl::check_and_update_common_device(common, operand.tensor, wrapper.c_str(), argument);
  }
}

// Set while a composite kernel runs on this thread: the `out` form that it calls was judged by the meta function.
thread_local bool t_judged = false;

// The `out` form of a structured operator shares its name with the other forms.
bool has_structured_form(const c10::OperatorHandle& op) {
  if (is_structured(op)) return true;
  static const auto* names = [] {
    auto* structured = new std::unordered_set<std::string>();
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      const std::optional<c10::OperatorHandle> handle = dispatcher.findSchema(name);
      if (handle && is_structured(*handle)) structured->insert(name.name);
    }
    return structured;
  }();
  return names->contains(op.operator_name().name);
}

Verdict check_before_kernel(const c10::OperatorHandle& op, c10::DispatchKey functionality, const std::string& name,
                            const std::vector<Operand>& operands) {
  auto check = checks().find(name);
  if (check == checks().end()) check = checks().find(op.operator_name().name);
  if (check != checks().end()) {
    check->second(operands);
    return Verdict::run;
  }
  if (!unchecked_operators().contains(name)) {
    check_same_device(operands, wrapper_name(op.schema(), functionality, has_structured_form(op)));
  }
  // The composite kernel's meta function is for dense tensors.
  if (functionality == c10::DispatchKey::Dense && is_structured(op)) return Verdict::run_composite;
  check_iterator_scalar(operands);  // an `out` form that the program called itself
  return Verdict::run;
}

}  // namespace

bool is_structured(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
}

Verdict check_operand_devices(const c10::OperatorHandle& op, c10::DispatchKey functionality,
                              at::ArrayRef<IValue> arguments) {
  const bool judged = std::exchange(t_judged, false);
  const std::vector<Operand> operands = operands_in_check_order(op.schema(), arguments);
  const std::string name = c10::toString(op.operator_name());
  if (!judged && check_before_kernel(op, functionality, name, operands) == Verdict::run_composite) {
    return Verdict::run_composite;
  }
  const auto kernel = kernel_checks().find(name);
  if (functionality == c10::DispatchKey::Dense && kernel != kernel_checks().end()) kernel->second(operands);
  return Verdict::run;
}

void run_composite_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  t_judged = true;
  try {
    op.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional, *stack);
  } catch (...) {
    t_judged = false;
    throw;
  }
  t_judged = false;
}

}  // namespace devsan::sim
