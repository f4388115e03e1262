// A function that was told two devices, by arguments of its own: one is the device where an operand is missed.
#include <string>
#include <string_view>
#include <utility>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/bridge/tensor_objects.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/inprocess/provenance/sites.h"

namespace devsan::hooks {

namespace {

bool speaks_of_device(std::string_view name) {
  return name.find("dev") != name.npos || name.find("gpu") != name.npos || name.find("cuda") != name.npos;
}

// The argument that says such a device by its name and its value.
class ToldThere final : public LinkVisitor {
 public:
  ToldThere(const Inquiry& inquiry, std::size_t operand, const void* frame)
      : inquiry_(inquiry), operand_(operand), arguments_(code_named_arguments(frame_code(frame))) {
    visit_frame(frame, false, *this);
  }
  const std::string& name() const { return name_; }
  bool link(const Link& link, void* object) override {
    if (link.kind != LinkKind::local || link.index >= arguments_ || link.name == nullptr) return true;
    std::string name = text_of(link.name);
    if (speaks_of_device(name) && says_wanted(object)) name_ = std::move(name);
    return name_.empty();
  }

 private:
  bool says_wanted(const void* object) const {
    if (const DeviceKey told = device_in(object)) return inquiry_.is_wanted(operand_, device_slot(told));
    const std::string text = object != nullptr && is_text(object) ? text_of(object) : std::string();
    for (const trace::OperandRecord& other : inquiry_.operands) {
      const std::string_view device = runtime.recorder->string(runtime.recorder->device_name(other.device));
      const bool there = text == device || text == device.substr(0, device.find(':'));
      if (!text.empty() && there && inquiry_.is_wanted(operand_, other.device)) return true;
    }
    return false;
  }

  const Inquiry& inquiry_;
  const std::size_t operand_;
  const int arguments_;
  std::string name_;
};

}  // namespace

void find_told_beside(const Inquiry& inquiry, std::size_t operand) {
  const void* frame = program_frame(inquiry.innermost);
  if (frame == nullptr || is_module_body(frame_code(frame))) return;
  const ToldThere told(inquiry, operand, frame);
  if (told.name().empty()) return;
  const trace::Position begin = position_of(frame_code(frame), 0);
  inquiry.found.add(trace::EvidenceKind::told_beside_at, operand, begin, told.name());
}

}  // namespace devsan::hooks
