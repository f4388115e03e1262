#include "hooks/torch_bridge/operands.h"

namespace devsan::hooks {

void look_at_other_device(Operands& seen, const c10::TensorImpl* tensor, DeviceKey device) noexcept {
  if (device == 0 || is_cpu_scalar(tensor, device)) return;
  if (is_cpu_scalar(seen.first, seen.device)) {
    seen.device = device;
    seen.first = tensor;
    return;
  }
  seen.mixed = true;
}

}  // namespace devsan::hooks
