// Storages that no operator makes: memory of NumPy, of a buffer or of another library (DLPack), and the copies that
// torch makes of whole storages (torch.load with a map_location, deepcopy). Without this their tensors would have no
// history.
#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include "hooks/inprocess/common/thread_state.h"
#include "hooks/inprocess/events/operator_table.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "hooks/torch_bridge/call.h"
#include "hooks/torch_bridge/late_operator.h"
#include "hooks/torch_bridge/torch_function.h"

namespace at {
class TensorMaker;
}

namespace devsan::hooks {

// at::TensorMaker::make_tensor, which is behind at::from_blob, as a plain function of the same calling convention, and
// at::storage_copy. Weak: without one of them, what it makes stays without a history.
at::Tensor make_tensor(at::TensorMaker* maker) __asm__("_ZN2at11TensorMaker11make_tensorEv") DEVSAN_TORCH_FUNCTION;
void storage_copy(c10::Storage& to, const c10::Storage& from,
                  bool non_blocking) __asm__("_ZN2at12storage_copyERN3c107StorageERKS1_b") DEVSAN_TORCH_FUNCTION;

namespace {

constinit LateOperator from_blob{"at::from_blob"};
constinit LateOperator copy_of_storage{"at::storage_copy"};

at::Tensor make_tensor_wrapper(at::TensorMaker* maker) {
  at::Tensor tensor = make_tensor(maker);
  if (!is_nested(thread_state())) {
    const Operands none;
    OutermostCall call(from_blob.id(), none, true);
    call.made(tensor.unsafeGetTensorImpl());
    call.returned();
  }
  return tensor;
}

void storage_copy_wrapper(c10::Storage& to, const c10::Storage& from, bool non_blocking) {
  const bool known = origin_table().find(from.unsafeGetStorageImpl()) != trace::LineageId::none;
  storage_copy(to, from, non_blocking);
  // The tensor that torch makes of the one for the copy says nothing of where that came from.
  if (!known) origin_table().erase(from.unsafeGetStorageImpl());
  if (is_nested(thread_state())) return;
  const Operands none;
  OutermostCall call(copy_of_storage.id(), none, true);
  call.copied(to.unsafeGetStorageImpl(), from.unsafeGetStorageImpl());
  call.returned();
}

DEVSAN_REPLACEMENTS const Replacement storage_replacements[] = {
    {reinterpret_cast<void*>(&make_tensor), reinterpret_cast<void*>(&make_tensor_wrapper)},
    {reinterpret_cast<void*>(&storage_copy), reinterpret_cast<void*>(&storage_copy_wrapper)},
};

}  // namespace

}  // namespace devsan::hooks
