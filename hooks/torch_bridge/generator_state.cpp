#include "hooks/torch_bridge/generator_state.h"

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "hooks/inprocess/events/operator_table.h"

namespace devsan::hooks {

// at::Generator::set_state(const Tensor&). Weak: a torch that lacks it leaves such an error untold.
void set_state(at::Generator* generator, const at::Tensor& state) __asm__("_ZN2at9Generator9set_stateERKNS_6TensorE")
    __attribute__((weak, visibility("default")));

namespace {

class Setting {
 public:
  explicit Setting(const at::Tensor& from) noexcept : before_(state_.generator_state) {
    state_.generator_state = from.defined() ? from.unsafeGetTensorImpl() : nullptr;
  }
  ~Setting() { state_.generator_state = before_; }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  ThreadState& state_ = thread_state();
  const c10::TensorImpl* before_;
};

void set_state_wrapper(at::Generator* generator, const at::Tensor& state) {
  const Setting scope(state);
  set_state(generator, state);
}

DEVSAN_REPLACEMENTS const Replacement generator_replacements[] = {
    {reinterpret_cast<void*>(&set_state), reinterpret_cast<void*>(&set_state_wrapper)},
};

}  // namespace

bool takes_state_from_device(const ThreadState& state) noexcept {
  return state.generator_state != nullptr && !state.generator_state->device().is_cpu();
}

void add_generator_state(const ThreadState& state, OperandList& operands) noexcept {
  if (!takes_state_from_device(state)) return;
  operands.tensor("new_state", state.generator_state);
  operands.device("generator", c10::Device(c10::kCPU));
}

}  // namespace devsan::hooks
