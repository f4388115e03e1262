#include "hooks/inprocess/evidence/neighbours.h"

#include <string>

#include "hooks/inprocess/common/runtime.h"

namespace devsan::hooks {

bool Neighbours::link(const Link&, void* object) {
  if (left_ == 0) return false;
  --left_;
  const bool own = object == inquiry_.object_of(operand_);
  const c10::TensorImpl* tensor = own ? nullptr : inquiry_.search.tensor_at(object);
  if (tensor == nullptr) return true;
  ++counts_[device_slot_of(tensor)];
  ++all_;
  return true;
}

bool Neighbours::report() const {
  constexpr std::size_t kSeveral = 2;
  for (const auto& [device, there] : counts_) {
    if (!inquiry_.is_wanted(operand_, device) || there < kSeveral || there * 2 <= all_) continue;
    const std::string name(runtime.recorder->string(runtime.recorder->device_name(device)));
    inquiry_.found.add(trace::EvidenceKind::entries_elsewhere, operand_, {},
                       name + " " + std::to_string(there) + " of " + std::to_string(all_));
    return true;
  }
  return false;
}

}  // namespace devsan::hooks
