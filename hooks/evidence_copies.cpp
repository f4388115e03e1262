// A tensor that was copied to the device where it is missed, and stayed where it was.
#include "hooks/copies.h"
#include "hooks/evidence.h"
#include "hooks/runtime.h"

namespace devsan::hooks {

void find_copied_away(const Inquiry& inquiry, std::size_t operand) {
  const Sighting& sighting = inquiry.search.sighting(operand);
  const c10::TensorImpl* tensor = sighting.base ? sighting.tensor : inquiry.identities[operand].tensor;
  const c10::StorageImpl* storage = tensor != nullptr ? TensorFields::storage(tensor) : nullptr;
  if (storage == nullptr) return;
  const auto copy = find_copy(storage);
  if (!copy) return;
  for (const trace::OperandRecord& other : inquiry.operands) {
    if (other.device != copy->device || other.device == inquiry.operands[operand].device) continue;
    inquiry.found.add(trace::EvidenceKind::copied_away, operand, runtime.recorder->site(copy->site).user,
                      runtime.recorder->string(runtime.recorder->device_name(copy->device)));
    return;
  }
}

}  // namespace devsan::hooks
