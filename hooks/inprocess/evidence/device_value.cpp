// Made on the device of another tensor, `zeros(3, device=steps.device)`: then that one may be the mistake. Where it was
// copied to the device that is missed, and itself stayed, the copy is what should have been given.
#include <optional>
#include <string>
#include <vector>

#include "hooks/inprocess/bridge/copies.h"
#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/device_source.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/lineage_nodes.h"
#include "hooks/inprocess/snapshot/named_objects.h"

namespace devsan::hooks {

namespace {

// The tensor that a running function was given as this argument, by the call that stands there.
const c10::TensorImpl* given_at(const Inquiry& inquiry, const trace::Position& call, std::string_view argument) {
  for (const void* frame = program_frame(inquiry.innermost); frame != nullptr;) {
    const void* caller = caller_of(frame);
    if (caller != nullptr && same_line(waits_at(caller), call)) {
      WrittenLink variable(argument);
      visit_frame(frame, false, variable);
      return variable.object() != nullptr ? inquiry.search.tensor_at(variable.object()) : nullptr;
    }
    frame = caller;
  }
  return nullptr;
}

// `pipe.device`, where that is a property. A tensor has a device, and an object may keep one: these are other matters.
bool computes_device(const Inquiry& inquiry, const trace::Position& at, std::string_view path) {
  const void* frame = running_frame(program_frame(inquiry.innermost), at);
  void* object = frame != nullptr ? object_behind(frame, path) : nullptr;
  if (object == nullptr || !has_instance_dict(object) || inquiry.search.tensor_at(object) != nullptr) return false;
  WrittenLink kept(".device");
  visit_links(object, kept);
  return kept.object() == nullptr;
}

// `device = self.embed.weight.device`, asked of a tensor that is by now where the operand is missed: a hook, or a line
// behind that one, has moved it since. A variable may mean another tensor by now, as in a loop.
bool has_moved_on(const Inquiry& inquiry, std::size_t operand, std::string_view path, const c10::TensorImpl* tensor) {
  return path.find('.') != path.npos && tensor != nullptr && inquiry.is_wanted(operand, device_slot_of(tensor));
}

void find_asked_early(const Inquiry& inquiry, std::size_t operand, const trace::Position& at, std::string_view path) {
  const void* frame = running_frame(program_frame(inquiry.innermost), at);
  void* object = frame != nullptr ? object_behind(frame, path) : nullptr;
  if (object == nullptr || !has_moved_on(inquiry, operand, path, inquiry.search.tensor_at(object))) return;
  inquiry.found.add(trace::EvidenceKind::device_asked_at, operand, at, path);
}

// The same where the call that made the operand asks itself: `torch.zeros(n, device=self.embed.weight.device)`.
void find_asked_by_maker(const Inquiry& inquiry, std::size_t operand) {
  visit_steps(inquiry.operands[operand].lineage, [&](const trace::LineageNode& step) {
    if (step.device != inquiry.operands[operand].device || step.how == trace::How::moved) return false;
    if (step.how == trace::How::derived) return true;
    const DeviceOwner owner = asked_for_device(inquiry.search, inquiry.innermost, step);
    if (has_moved_on(inquiry, operand, owner.path, owner.tensor)) {
      inquiry.found.add(trace::EvidenceKind::device_asked_at, operand, runtime.recorder->site(step.site).user,
                        owner.path);
    }
    return false;
  });
}

// Where this tensor was copied to the device that the operand is missed on, and itself stayed.
std::optional<Copy> copied_away(const Inquiry& inquiry, std::size_t operand, const c10::TensorImpl* tensor) {
  const c10::StorageImpl* storage = tensor != nullptr ? storage_of(tensor) : nullptr;
  const auto copy = storage != nullptr ? find_copy(storage, Copied::away) : std::nullopt;
  return copy && inquiry.is_wanted(operand, copy->device) ? copy : std::nullopt;
}

// The same of the tensor whose history stands behind that of what was made on its device.
std::optional<Copy> copied_source(const Inquiry& inquiry, std::size_t operand) {
  std::optional<Copy> found;
  visit_steps(inquiry.operands[operand].lineage, [&](const trace::LineageNode& step) {
    if (step.device == inquiry.operands[operand].device) {
      found = copied_away(inquiry, operand, device_source(inquiry.search, inquiry.innermost, step));
    }
    return !found && step.how == trace::How::derived;
  });
  return found;
}

}  // namespace

void find_device_value(const Inquiry& inquiry, std::size_t operand) {
  const auto computes = [&](const trace::Position& at, std::string_view path) {
    find_asked_early(inquiry, operand, at, path);
    return computes_device(inquiry, at, path);
  };
  find_device_source(inquiry.operands[operand], operand, inquiry.found, computes);
  find_asked_by_maker(inquiry, operand);
  const auto tell = [&](const Copy& copy, std::string_view argument) {
    inquiry.found.add(trace::EvidenceKind::device_value_copied_at, operand, runtime.recorder->site(copy.site).user,
                      argument);
  };
  if (const auto copy = copied_source(inquiry, operand)) return tell(*copy, "");
  const auto records = inquiry.found.records();
  const std::vector<trace::EvidenceRecord> known(records.begin(), records.end());
  for (const trace::EvidenceRecord& record : known) {
    if (record.kind != trace::EvidenceKind::device_from || record.operand != operand) continue;
    const std::string_view argument = runtime.recorder->string(record.text);
    const auto copy = copied_away(inquiry, operand, given_at(inquiry, record.at, argument));
    if (copy) return tell(*copy, argument);
  }
}

}  // namespace devsan::hooks
