#include "hooks/inprocess/bridge/tensor_facts.h"

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/TensorWrapper.h>
#include <torch/csrc/autograd/variable.h>

#include "hooks/inprocess/provenance/device_slots.h"
#include "hooks/torch_bridge/tensor_fields.h"

namespace devsan::hooks {

namespace {

// Null for a tensor that autograd has nothing to do with.
const torch::autograd::AutogradMeta* autograd_meta(const c10::TensorImpl* tensor) noexcept {
  return static_cast<const torch::autograd::AutogradMeta*>(tensor->autograd_meta());
}

// Null for what torch.func has not wrapped. Which class a wrapper has, torch itself tells by these keys.
const c10::TensorImpl* wrapped_value(const c10::TensorImpl* wrapper) noexcept {
  const c10::DispatchKeySet keys = wrapper->key_set();
  if (keys.has(c10::DispatchKey::FuncTorchGradWrapper)) {
    return static_cast<const at::functorch::TensorWrapper*>(wrapper)->value().unsafeGetTensorImpl();
  }
  if (keys.has(c10::DispatchKey::FuncTorchBatched)) {
    return static_cast<const at::functorch::BatchedTensorImpl*>(wrapper)->value().unsafeGetTensorImpl();
  }
  return nullptr;
}

// The tensor that torch.func has wrapped, through all wrappers; null where it has wrapped none.
const c10::TensorImpl* wrapped_tensor(const c10::TensorImpl* tensor) noexcept {
  const c10::TensorImpl* innermost = nullptr;
  while (const c10::TensorImpl* value = wrapped_value(innermost != nullptr ? innermost : tensor)) innermost = value;
  return innermost;
}

template <class Sparse>
const c10::StorageImpl* storage_of_values(const c10::TensorImpl* tensor) noexcept {
  const auto* sparse = dynamic_cast<const Sparse*>(tensor);
  return sparse != nullptr ? TensorFields::storage(sparse->values().unsafeGetTensorImpl()) : nullptr;
}

// Of what a sparse tensor keeps its numbers in; null for every other. The keys alone do not tell: a subclass made by
// `_make_wrapper_subclass()` has those of what it stands for.
const c10::StorageImpl* sparse_storage(const c10::TensorImpl* tensor) noexcept {
  const c10::DispatchKeySet keys = tensor->key_set();
  if (keys.has_all(c10::sparse_ks)) return storage_of_values<at::SparseTensorImpl>(tensor);
  if (keys.has_any(c10::sparse_csr_ks)) return storage_of_values<at::SparseCsrTensorImpl>(tensor);
  return nullptr;
}

}  // namespace

const c10::StorageImpl* inner_storage(const c10::TensorImpl* tensor) noexcept {
  const c10::TensorImpl* value = wrapped_tensor(tensor);
  if (value == nullptr) return sparse_storage(tensor);
  const c10::StorageImpl* own = TensorFields::storage(value);
  return own != nullptr ? own : sparse_storage(value);
}

const c10::StorageImpl* storage_of(const c10::TensorImpl* tensor) noexcept {
  return TensorFields::storage_behind(tensor);
}

DeviceKey device_of(const c10::TensorImpl* tensor) noexcept {
  return TensorFields::device(tensor);
}

trace::DeviceSlot device_slot_of(const c10::TensorImpl* tensor) noexcept {
  return device_slot(TensorFields::device(tensor));
}

std::size_t dims_of(const c10::TensorImpl* tensor) noexcept {
  return TensorFields::dims(tensor);
}

const c10::TensorImpl* gradient_of(const c10::TensorImpl* tensor) noexcept {
  return tensor->grad().unsafeGetTensorImpl();
}

bool has_graph(const c10::TensorImpl* tensor) noexcept {
  const torch::autograd::AutogradMeta* meta = autograd_meta(tensor);
  return meta != nullptr && meta->grad_fn_ != nullptr;
}

bool is_trained(const c10::TensorImpl* tensor) noexcept {
  const torch::autograd::AutogradMeta* meta = autograd_meta(tensor);
  return meta != nullptr && (meta->requires_grad_ || meta->grad_fn_ != nullptr);
}

}  // namespace devsan::hooks
