#include "hooks/module_weights.h"

#include "hooks/code_api.h"
#include "hooks/evidence.h"
#include "hooks/python_frames.h"
#include "hooks/runtime.h"
#include "hooks/tensor_fields.h"
#include "hooks/waiting_calls.h"

namespace devsan::hooks {

namespace {

class FirstArgument final : public LinkVisitor {
 public:
  explicit FirstArgument(const void* frame) {
    const void* code = frame_code(frame);
    if (code_arguments(code) == 0) return;
    name_ = code_local_name(code, 0);
    visit_frame(frame, false, *this);
  }
  const void* module() const { return module_; }
  bool link(const Link& link, void* object) override {
    if (link.name != name_) return true;
    if (is_torch_module(object)) module_ = object;
    return false;
  }

 private:
  const void* name_ = nullptr;
  const void* module_ = nullptr;
};

}  // namespace

Weights::Weights(const ObjectSearch& search, const void* root) : search_(search) {
  modules_.push_back(root);
  for (std::size_t k = 0; k < modules_.size() && all_ < kMaxWeights; ++k) {
    visit_links(const_cast<void*>(modules_[k]), *this);
  }
}

trace::DeviceSlot Weights::usual() const {
  for (const auto& [device, count] : counts_) {
    if (all_ >= kSeveral && count * 2 > all_) return device;
  }
  return trace::DeviceSlot::none;
}

bool Weights::mostly_on(trace::DeviceSlot device) const {
  const auto found = counts_.find(device);
  return found != counts_.end() && found->second * 2 >= all_;
}

std::string Weights::share_of(trace::DeviceSlot device) const {
  return std::to_string(counts_.at(device)) + " of " + std::to_string(all_);
}

bool Weights::link(const Link& link, void* object) {
  if (link.kind == LinkKind::child && modules_.size() < kMaxWeights && seen_.insert(object).second) {
    modules_.push_back(object);
  }
  if (link.kind != LinkKind::parameter && link.kind != LinkKind::buffer) return true;
  const c10::TensorImpl* tensor = search_.tensor_at(object);
  if (tensor == nullptr || !seen_.insert(object).second) return true;
  ++counts_[device_slot(TensorFields::device(tensor))];
  ++all_;
  return true;
}

const void* module_called(const void* frame) {
  return runs_python(frame) ? FirstArgument(frame).module() : nullptr;
}

}  // namespace devsan::hooks
