#include "hooks/torch_bridge/traced_failure.h"

#include <exception>

#include "hooks/inprocess/bridge/tensor_objects.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/inprocess/snapshot/traced_history.h"

namespace devsan::hooks {

TracedFailure::TracedFailure(const void* innermost) noexcept {
  try {
    call_ = traced_call(innermost);
    if (!call_) return;
    values_.emplace(*call_);
    frames_ = std::make_unique<TracedFrames>(*call_, *values_);
  } catch (const std::exception&) {  // a place is worth no failure
  }
}

void TracedFailure::replace(OperandList& operands) const noexcept {
  try {
    for (std::size_t k = 0; k < operands.records().size(); ++k) {
      const void* object = operands.identities()[k].object;
      const DeviceKey device = object != nullptr ? fake_device(object) : 0;
      if (device == 0) continue;
      const void* real = values_ ? values_->real_of(object) : nullptr;
      if (real != nullptr) {
        operands.stand_for(k, tensor_of(real));
      } else {
        operands.lie_on(k, device_slot(device));
      }
    }
  } catch (const std::exception&) {  // operands stay as they are
  }
}

void TracedFailure::give_histories(OperandList& operands) const noexcept {
  try {
    for (std::size_t k = 0; values_ && k < operands.records().size(); ++k) {
      const void* object = operands.identities()[k].object;
      const void* node = object != nullptr ? values_->node_of(object) : nullptr;
      if (node != nullptr) operands.records()[k].lineage = history_of_node(node, call_->functions);
    }
  } catch (const std::exception&) {  // histories are worth no failure
  }
}

}  // namespace devsan::hooks
