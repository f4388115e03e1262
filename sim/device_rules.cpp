#include "sim/device_rules.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/core/stack.h>

#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "sim/batch_norm.h"
#include "sim/device_checks.h"
#include "sim/operands.h"

namespace devsan::sim {
namespace {

using c10::IValue;

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

std::string wrapper_of(const Call& call, c10::DispatchKey functionality, bool structured) {
  const bool dense = functionality == c10::DispatchKey::Dense;
  if (dense && call.op.schema().name() == "aten::native_batch_norm" && is_cudnn_batch_norm()) {
    return "wrapper_CUDA__cudnn_batch_norm";
  }
  return wrapper_name(call.op.schema(), functionality, structured);
}

// The wrappers compare outputs and positional arguments; others are the kernel's to compare.
void check_same_device(const Call& call, const std::string& wrapper) {
  std::optional<c10::Device> common;
  for (const Operand& operand : call.operands) {
    if (operand.argument->kwarg_only() && !is_output(*operand.argument)) continue;
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

Verdict check_before_kernel(const Call& call, c10::DispatchKey functionality, const std::string& name) {
  if (const DeviceCheck rule = find_device_rule(call.op, name)) {
    rule(call);
    return Verdict::run;
  }
  const DeviceCheck meta = find_meta_rule(name);
  if (meta == nullptr) check_same_device(call, wrapper_of(call, functionality, has_structured_form(call.op)));
  // The composite kernel's meta function is for dense tensors.
  if (functionality == c10::DispatchKey::Dense && is_structured(call.op)) return Verdict::run_composite;
  if (meta != nullptr) meta(call);  // an `out` form that the program called itself
  return Verdict::run;
}

}  // namespace

bool is_structured(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
}

Verdict check_operand_devices(const c10::OperatorHandle& op, c10::DispatchKey functionality,
                              at::ArrayRef<IValue> arguments) {
  const bool judged = std::exchange(t_judged, false);
  const Call call = call_of(op, arguments);
  const std::string name = c10::toString(op.operator_name());
  if (!judged && check_before_kernel(call, functionality, name) == Verdict::run_composite) {
    return Verdict::run_composite;
  }
  const DeviceCheck kernel = functionality == c10::DispatchKey::Dense ? find_kernel_rule(name) : nullptr;
  if (kernel != nullptr) kernel(call);
  return Verdict::run;
}

void check_wrapper(const c10::OperatorHandle& op, at::ArrayRef<IValue> arguments) {
  check_same_device(call_of(op, arguments), wrapper_name(op.schema(), c10::DispatchKey::Dense, /*structured=*/false));
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
