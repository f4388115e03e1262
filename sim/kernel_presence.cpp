#include "sim/kernel_presence.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/device_rules.h"

namespace devsan::sim {
namespace {

using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

using BoxedKernel = c10::BoxedKernel::BoxedKernelFunction_withDispatchKeys;

void replace(std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
}

void erase_line(std::string& text, const std::string& beginning) {
  const std::size_t at = text.find("\n" + beginning);
  if (at != std::string::npos) text.erase(at + 1, text.find('\n', at + 1) - at);
}

// The dispatcher's words are those for another backend without a kernel, with CUDA's name.
std::string words_for(std::string text, DispatchKey asked, DispatchKey key) {
  const std::string name = c10::toString(key);
  replace(text, "'" + std::string(c10::toString(asked)) + "' backend", "'" + name + "' backend");
  replace(text, ", " + name + ",", ",");  // our own kernel, which says that there is none
  replace(text, "[" + name + ", ", "[");
  erase_line(text, name + ": registered at ");
  return text;
}

template <DispatchKey key>
void raise_absent(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  const DispatchKey asked =
      c10::toRuntimePerBackendFunctionalityKey(c10::toFunctionalityKey(key), c10::BackendComponent::HIPBit);
  try {
    op.redispatchBoxed(c10::DispatchKeySet(asked), stack);
  } catch (const c10::NotImplementedError& error) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, words_for(error.what_without_backtrace(), asked, key));
  }
  TORCH_INTERNAL_ASSERT(false, asked, " has a kernel for ", op.operator_name());
}

DispatchKey composite_of(const OperatorHandle& op) {
  for (const DispatchKey key : {DispatchKey::CompositeExplicitAutograd, DispatchKey::CompositeImplicitAutograd}) {
    if (op.hasKernelForDispatchKey(key)) return key;
  }
  return DispatchKey::CompositeExplicitAutogradNonFunctional;
}

void run_composite(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  op.callBoxedForDispatchKey(composite_of(op), *stack);
}

void check_and_run_composite(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  check_wrapper(op, torch::jit::last(*stack, op.schema().arguments().size()));
  run_composite(op, keys, stack);
}

template <BoxedKernel* kernel>
void put(const char* name, DispatchKey key) {
  static auto* registrations = new std::vector<c10::RegistrationHandleRAII>();  // a registration lasts as long as it
  const c10::OperatorName operator_name = torch::jit::parseName(name);
  auto& dispatcher = c10::Dispatcher::singleton();
  if (!dispatcher.findSchema(operator_name)) return;  // this release has no such operator
  registrations->push_back(dispatcher.registerImpl(
      operator_name, key, c10::KernelFunction::makeFromBoxedFunction<kernel>(), std::nullopt, nullptr, "devsan"));
}

void put_checked_composite(const char* name) {
  put<&check_and_run_composite>(name, DispatchKey::CUDA);
  const std::optional<OperatorHandle> op = c10::Dispatcher::singleton().findSchema(torch::jit::parseName(name));
  // Autograd has a formula for the fused kernel, which needs another one of CUDA's: it is to see the parts.
  if (op && composite_of(*op) == DispatchKey::CompositeImplicitAutograd) {
    put<&check_and_run_composite>(name, DispatchKey::AutogradCUDA);
  }
}

}  // namespace

void register_kernel_presence() {
#define DEVSAN_ABSENT_KERNEL(name, key) put<&raise_absent<DispatchKey::key>>(name, DispatchKey::key);
#define DEVSAN_COMPOSITE_KERNEL(name) put<&run_composite>(name, DispatchKey::CUDA);
#define DEVSAN_CHECKED_COMPOSITE(name) put_checked_composite(name);
#include "sim/kernel_presence.def"
#undef DEVSAN_ABSENT_KERNEL
#undef DEVSAN_COMPOSITE_KERNEL
#undef DEVSAN_CHECKED_COMPOSITE
}

}  // namespace devsan::sim
