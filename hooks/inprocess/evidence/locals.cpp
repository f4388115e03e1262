// Whether an operand is alone on its device: among all that the failing function works with, or in the program.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "hooks/inprocess/bridge/memory_samples.h"
#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/source/python_moves.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxObjects = 4096;
constexpr std::size_t kFewest = 4;  // others, for being alone to mean anything

// The tensors that variables are, and that lists, dictionaries, objects and modules in variables keep. CPU scalars may
// be anywhere.
class Tensors final : public LinkVisitor {
 public:
  Tensors(const ObjectSearch& search, const void* frame) : search_(search) {
    visit_frame(frame, is_module_body(frame_code(frame)), *this);
    // What modules are made of is looked at as a whole, of everything else one step.
    inside_ = true;
    for (std::size_t k = 0; k < open_.size() && !full(); ++k) visit_links(const_cast<void*>(open_[k]), *this);
  }

  bool complete() const { return !full(); }
  const std::map<trace::DeviceSlot, std::unordered_set<const void*>>& by_device() const { return storages_; }

  bool link(const Link& link, void* object) override {
    if (full()) return false;
    if (const c10::TensorImpl* tensor = search_.tensor_at(object)) {
      const bool anywhere = is_cpu_scalar(tensor);
      const void* storage = anywhere ? nullptr : storage_of(tensor);
      if (storage != nullptr) storages_[device_slot_of(tensor)].insert(storage);
    } else if ((!inside_ || link.kind == LinkKind::child) && leads_on(object) && seen_.insert(object).second) {
      open_.push_back(object);
    }
    return true;
  }

 private:
  bool full() const { return open_.size() >= kMaxObjects; }

  const ObjectSearch& search_;
  std::vector<const void*> open_;
  std::unordered_set<const void*> seen_;
  std::map<trace::DeviceSlot, std::unordered_set<const void*>> storages_;
  bool inside_ = false;
};

}  // namespace

void find_locals_elsewhere(const Inquiry& inquiry, std::size_t operand) {
  const c10::TensorImpl* tensor = inquiry.identities[operand].tensor;
  const void* frame = program_frame(inquiry.innermost);
  if (tensor == nullptr || frame == nullptr || storage_of(tensor) == nullptr) return;
  if (is_trained(tensor)) return;  // what is optimized may well begin where the data are still to be moved
  const Tensors tensors(inquiry.search, frame);
  if (!tensors.complete() || tensors.by_device().size() != 2) return;
  const trace::DeviceSlot own = inquiry.operands[operand].device;
  std::size_t others = 0;
  trace::DeviceSlot elsewhere = own;
  for (const auto& [device, storages] : tensors.by_device()) {
    if (device == own) {
      if (storages.size() != 1 || !storages.contains(storage_of(tensor))) return;
    } else {
      elsewhere = device;
      others = storages.size();
    }
  }
  if (elsewhere == own || others < kFewest) return;
  const std::string device(runtime.recorder->string(runtime.recorder->device_name(elsewhere)));
  inquiry.found.add(trace::EvidenceKind::locals_elsewhere, operand, {},
                    device + " " + std::to_string(others) + " of " + std::to_string(others + 1));
}

// Once may be a matter of the one value; a function that brings several works on the host.
void find_host_work(const Inquiry& inquiry, std::size_t operand) {
  const void* frame = program_frame(inquiry.innermost);
  if (frame == nullptr || is_module_body(frame_code(frame))) return;
  const trace::Position at = waits_at(frame);
  SourceFiles files;
  const SourceLines lines(files.whole(at.file));
  const int brought = lines_for_host(lines, at.line);
  if (brought > 1) inquiry.found.add(trace::EvidenceKind::host_work, operand, {}, std::to_string(brought));
}

// The allocator of the device has no other block than those of the operands.
void find_alone_on_device(const Inquiry& inquiry, std::size_t operand) {
  const trace::DeviceSlot own = inquiry.operands[operand].device;
  std::unordered_set<const void*> storages;
  std::optional<DeviceKey> key;
  for (std::size_t k = 0; k < inquiry.operands.size(); ++k) {
    const c10::TensorImpl* tensor = inquiry.identities[k].tensor;
    if (tensor == nullptr || inquiry.operands[k].device != own) continue;
    if (!is_cuda_tensor(tensor) || storage_of(tensor) == nullptr) return;
    storages.insert(storage_of(tensor));
    key = device_of(tensor);
  }
  if (!key || device_bytes(*key).blocks != storages.size()) return;
  inquiry.found.add(trace::EvidenceKind::alone_on_device, operand, {},
                    runtime.recorder->string(runtime.recorder->device_name(own)));
}

}  // namespace devsan::hooks
