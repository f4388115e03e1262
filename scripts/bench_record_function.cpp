// What devsan does on its hot path, by PyTorch's own means: a RecordFunction callback that compares operands' devices.
#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <optional>

namespace {

std::uint64_t mixed = 0;
std::optional<at::CallbackHandle> handle;

std::unique_ptr<at::ObserverContext> compare(const at::RecordFunction& call) {
  std::optional<c10::Device> first;
  for (const c10::IValue& input : call.inputs()) {
    if (!input.isTensor() || !input.toTensor().defined()) continue;
    const c10::Device device = input.toTensor().device();
    if (!first) first = device;
    if (device != *first) ++mixed;
  }
  return nullptr;
}

}  // namespace

extern "C" void bench_record_function(int enabled) {
  if (enabled != 0 && !handle) {
    handle = at::addGlobalCallback(at::RecordFunctionCallback(compare).needsInputs(true));
  } else if (enabled == 0 && handle) {
    at::removeCallback(*handle);
    handle.reset();
  }
}
