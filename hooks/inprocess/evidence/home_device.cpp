#include "hooks/inprocess/evidence/home_device.h"

#include <algorithm>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/bridge/tensor_objects.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/module_weights.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/inprocess/snapshot/argument_tensors.h"
#include "trace/odd_operand.h"

namespace devsan::hooks {

namespace {

// A torch.device among a function's arguments says where it is to work.
class ToldDevice final : public LinkVisitor {
 public:
  explicit ToldDevice(const void* frame) : arguments_(code_named_arguments(frame_code(frame))) {
    visit_frame(frame, false, *this);
  }
  trace::DeviceSlot device = trace::DeviceSlot::none;
  bool link(const Link& link, void* object) override {
    const bool argument = link.kind == LinkKind::local && link.index < arguments_;
    if (const DeviceKey told = argument ? device_in(object) : 0) device = device_slot(told);
    return device == trace::DeviceSlot::none;
  }

 private:
  const int arguments_;
};

// The device of all that it was given beside the operands; none where there are several.
trace::DeviceSlot given_on(const ObjectSearch& search, const void* frame, std::span<const OperandIdentity> identities) {
  trace::DeviceSlot device = trace::DeviceSlot::none;
  for (const ArgumentTensor& one : argument_tensors(search, frame)) {
    const auto is_operand = [&](const OperandIdentity& identity) { return identity.object == one.object; };
    if (std::ranges::any_of(identities, is_operand)) continue;
    const trace::DeviceSlot here = device_slot_of(one.tensor);
    if (device != trace::DeviceSlot::none && device != here) return trace::DeviceSlot::none;
    device = here;
  }
  return device;
}

constexpr int kMaxCalls = 12;

// The device of all weights of the innermost module that a function works for, be it by a helper; none where they lie
// on several.
trace::DeviceSlot weights_on(const ObjectSearch& search, const void* frame) {
  for (int calls = 0; frame != nullptr && calls < kMaxCalls; ++calls, frame = caller_of(frame)) {
    const void* module = module_called(frame);
    if (module == nullptr) continue;
    const Weights weights(search, module);
    if (weights.empty()) continue;
    return weights.only().value_or(trace::DeviceSlot::none);
  }
  return trace::DeviceSlot::none;
}

}  // namespace

void mark_home(const ObjectSearch& search, const void* innermost, std::span<trace::OperandRecord> records,
               std::span<const OperandIdentity> identities) {
  const void* frame = program_frame(innermost);
  if (frame == nullptr || is_module_body(frame_code(frame))) return;
  trace::DeviceSlot home = ToldDevice(frame).device;
  if (home == trace::DeviceSlot::none) home = weights_on(search, frame);
  if (home == trace::DeviceSlot::none) home = given_on(search, frame, identities);
  const std::string_view name = runtime.recorder->string(runtime.recorder->device_name(home));
  if (trace::classify_device(name) != trace::DeviceClass::accelerator) return;
  for (trace::OperandRecord& record : records) {
    if (record.device == home) record.flags |= trace::kAtHome;
  }
}

}  // namespace devsan::hooks
