// A kernel that is registered later is preferred to an earlier one of the same key, so none of CUDA's has to be taken
// away. What takes its place is what the operator would do in a build without CUDA.
#include "sim/cuda_build.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <string>
#include <vector>

#include "sim/fallback.h"

namespace devsan::sim {
namespace {

using c10::DispatchKey;
using c10::OperatorHandle;

// Of dense, sparse, nested and quantized tensors.
constexpr DispatchKey kCudaKeys[] = {DispatchKey::CUDA, DispatchKey::SparseCUDA, DispatchKey::SparseCsrCUDA,
                                     DispatchKey::NestedTensorCUDA, DispatchKey::QuantizedCUDA};

// PyTorch registers its collectives for every device; they lead to the process group's own backend.
constexpr const char* kCollectives = "c10d::";

DispatchKey host_key_of(DispatchKey cuda_key) {
  return c10::toRuntimePerBackendFunctionalityKey(c10::toFunctionalityKey(cuda_key), c10::BackendComponent::CPUBit);
}

template <DispatchKey composite>
void run_composite(const OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  op.callBoxedForDispatchKey(composite, *stack);
}

class Covers {
 public:
  void add(const OperatorHandle& op, DispatchKey cuda_key) {
    if (op.hasKernelForDispatchKey(host_key_of(cuda_key))) {
      put<&run_on_host>(op, cuda_key);
    } else if (op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd)) {
      put<&run_composite<DispatchKey::CompositeExplicitAutograd>>(op, cuda_key);
    } else if (op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd)) {
      // Autograd has a formula for the fused kernel, which needs another one of CUDA's: it is to see the parts.
      put<&run_composite<DispatchKey::CompositeImplicitAutograd>>(op, cuda_key);
      put<&run_composite<DispatchKey::CompositeImplicitAutograd>>(op, DispatchKey::AutogradCUDA);
    } else {
      put<&run_on_host>(op, cuda_key);  // which says that there is no such kernel
    }
  }

 private:
  template <c10::BoxedKernel::BoxedKernelFunction_withDispatchKeys* kernel>
  void put(const OperatorHandle& op, DispatchKey key) {
    registrations_.push_back(c10::Dispatcher::singleton().registerImpl(
        op.operator_name(), key, c10::KernelFunction::makeFromBoxedFunction<kernel>(), std::nullopt, nullptr,
        "devsan"));
  }

  std::vector<c10::RegistrationHandleRAII> registrations_;
};

}  // namespace

void cover_cuda_kernels() {
  static auto* covers = new Covers();
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name.starts_with(kCollectives)) continue;
    const std::optional<OperatorHandle> op = dispatcher.findOp(name);
    if (!op || !op->hasSchema()) continue;
    for (const DispatchKey key : kCudaKeys) {
      if (op->hasKernelForDispatchKey(key)) covers->add(*op, key);
    }
  }
}

}  // namespace devsan::sim
