#include "hooks/inprocess/snapshot/home_device.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <vector>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/bridge/tensor_objects.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/own_attributes.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/inprocess/snapshot/argument_tensors.h"
#include "hooks/inprocess/snapshot/program_frames.h"
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

bool is_torch_module(const void* object) noexcept {
  if (is_container(object) || !leads_on(object) || !has_instance_dict(object)) return false;
  const OwnAttributes attributes(object);
  return std::ranges::all_of(std::array{"_parameters", "_buffers", "_modules"}, [&](const char* part) {
    return attributes[part] != nullptr && is_dict(attributes[part]);
  });
}

// The first argument of the function that runs in a frame, where it is a module.
class OwnModule final : public LinkVisitor {
 public:
  explicit OwnModule(const void* frame) {
    const void* code = frame_code(frame);
    if (code_arguments(code) == 0) return;
    name_ = code_local_name(code, 0);
    visit_frame(frame, false, *this);
  }
  const void* module = nullptr;

  bool link(const Link& link, void* object) override {
    if (link.name != name_) return true;
    if (is_torch_module(object)) module = object;
    return false;
  }

 private:
  const void* name_ = nullptr;
};

// The devices of the parameters and buffers at and below a module; ends at the second one.
class WeightWalk final : public LinkVisitor {
 public:
  WeightWalk(const ObjectSearch& search, const void* root) : search_(search), modules_{root}, seen_{root} {
    for (std::size_t k = 0; k < modules_.size() && !several && seen_.size() < kMaxSeen; ++k) {
      visit_links(const_cast<void*>(modules_[k]), *this);
    }
  }
  trace::DeviceSlot device = trace::DeviceSlot::none;
  bool several = false;

  bool link(const Link& link, void* object) override {
    if (link.kind == LinkKind::child && seen_.insert(object).second) modules_.push_back(object);
    const bool weight = link.kind == LinkKind::parameter || link.kind == LinkKind::buffer;
    const c10::TensorImpl* tensor = weight ? search_.tensor_at(object) : nullptr;
    if (tensor != nullptr && seen_.insert(object).second) meet(device_slot_of(tensor));
    return !several && seen_.size() < kMaxSeen;
  }

 private:
  static constexpr std::size_t kMaxSeen = 20000;

  void meet(trace::DeviceSlot here) noexcept {
    several = device != trace::DeviceSlot::none && device != here;
    device = here;
  }

  const ObjectSearch& search_;
  std::vector<const void*> modules_;
  std::unordered_set<const void*> seen_;
};

constexpr int kMaxModuleCalls = 12;

// The device of all weights of the innermost module that a function works for, be it by a helper; none where they lie
// on several.
trace::DeviceSlot weights_on(const ObjectSearch& search, const void* frame) {
  for (int calls = 0; frame != nullptr && calls < kMaxModuleCalls; ++calls, frame = program_caller(frame)) {
    const void* module = OwnModule(frame).module;
    if (module == nullptr) continue;
    const WeightWalk weights(search, module);
    if (weights.several) return trace::DeviceSlot::none;
    if (weights.device != trace::DeviceSlot::none) return weights.device;
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
