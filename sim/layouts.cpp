#include "sim/layouts.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/quantized/QTensorImpl.h>
#include <c10/util/Exception.h>

#include <utility>
#include <vector>

#include "trace/not_simulated.h"

namespace devsan::sim {
namespace {

c10::DispatchKeySet keys(c10::DispatchKey functionality, c10::Device device) {
  const auto backend = device.is_cpu() ? c10::BackendComponent::CPUBit : c10::BackendComponent::CUDABit;
  return c10::DispatchKeySet(c10::toRuntimePerBackendFunctionalityKey(functionality, backend));
}

// CSR and its relatives
bool is_compressed(const at::Tensor& tensor) {
  return tensor.key_set().has(c10::DispatchKey::SparseCsr);
}

at::SparseTensorImpl* coordinates(const at::Tensor& tensor) {
  return static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::SparseCsrTensorImpl* compressed(const at::Tensor& tensor) {
  return static_cast<at::SparseCsrTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::native::NestedTensorImpl* nested(const at::Tensor& tensor) {
  return static_cast<at::native::NestedTensorImpl*>(tensor.unsafeGetTensorImpl());
}

void take_geometry(const at::Tensor& target, const at::Tensor& model) {
  c10::TensorImpl* impl = target.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(model.sizes(), model.strides(), model.storage_offset());
  if (model.is_conj()) impl->_set_conj(true);
  if (model.is_neg()) impl->_set_neg(true);
}

at::Tensor strided(const at::Tensor& model, c10::Storage storage, c10::Device device) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys(c10::DispatchKey::Dense, device),
                                                             model.dtype());
  take_geometry(made, model);
  return made;
}

at::Tensor quantized(const at::Tensor& model, c10::Storage storage, c10::Device device) {
  const at::QuantizerPtr quantizer = static_cast<at::QTensorImpl*>(model.unsafeGetTensorImpl())->quantizer();
  at::Tensor made = at::detail::make_tensor<at::QTensorImpl>(
      std::move(storage), keys(c10::DispatchKey::Quantized, device), model.dtype(), quantizer);
  take_geometry(made, model);
  return made;
}

at::Tensor nested_over(const at::Tensor& model, c10::Storage storage, c10::Device device) {
  const at::native::NestedTensorImpl* impl = nested(model);
  at::Tensor buffer = at::detail::make_tensor<c10::TensorImpl>(std::move(storage),
                                                               keys(c10::DispatchKey::Dense, device), model.dtype());
  buffer.unsafeGetTensorImpl()->set_sizes_contiguous({static_cast<std::int64_t>(impl->get_buffer_size())});
  return at::detail::make_tensor<at::native::NestedTensorImpl>(buffer, impl->get_nested_sizes(),
                                                               impl->get_nested_strides(), impl->get_storage_offsets());
}

void assign_coordinates(const at::Tensor& target, const at::Tensor& model, const Parts& parts) {
  at::SparseTensorImpl* to = coordinates(target);
  const at::SparseTensorImpl* from = coordinates(model);
  to->raw_resize_(from->sparse_dim(), from->dense_dim(), model.sizes());
  to->set_indices_and_values_unsafe(parts.tensor(from->indices()), parts.tensor(from->values()));
  to->set_coalesced(from->coalesced());
}

void assign_compressed(const at::Tensor& target, const at::Tensor& model, const Parts& parts) {
  const at::SparseCsrTensorImpl* from = compressed(model);
  compressed(target)->set_member_tensors(parts.tensor(from->compressed_indices()), parts.tensor(from->plain_indices()),
                                         parts.tensor(from->values()), model.sizes());
}

}  // namespace

at::Tensor rebuild(const at::Tensor& model, c10::Device device, const Parts& parts) {
  if (model.is_sparse()) {
    at::Tensor made =
        at::detail::make_tensor<at::SparseTensorImpl>(keys(c10::DispatchKey::Sparse, device), model.dtype());
    assign_coordinates(made, model, parts);
    return made;
  }
  if (is_compressed(model)) {
    at::Tensor made = at::detail::make_tensor<at::SparseCsrTensorImpl>(keys(c10::DispatchKey::SparseCsr, device),
                                                                       device, model.layout(), model.dtype());
    assign_compressed(made, model, parts);
    return made;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(model.has_storage() && (model.layout() == at::kStrided || model.is_nested()),
                              trace::kNotSimulated, "tensors of layout ", model.layout());
  c10::Storage storage = parts.storage(model.storage());
  if (model.is_nested()) return nested_over(model, std::move(storage), device);
  if (model.is_quantized()) return quantized(model, std::move(storage), device);
  return strided(model, std::move(storage), device);
}

std::vector<at::Tensor> parts_of(const at::Tensor& tensor) {
  if (tensor.is_sparse()) return {coordinates(tensor)->indices(), coordinates(tensor)->values()};
  if (is_compressed(tensor)) {
    const at::SparseCsrTensorImpl* impl = compressed(tensor);
    return {impl->compressed_indices(), impl->plain_indices(), impl->values()};
  }
  return {};
}

std::vector<at::Tensor> host_parts_of(const at::Tensor& tensor) {
  if (!tensor.is_nested()) return {};
  const at::native::NestedTensorImpl* impl = nested(tensor);
  return {impl->get_nested_sizes(), impl->get_nested_strides(), impl->get_storage_offsets()};
}

bool is_coalesced(const at::Tensor& tensor) {
  return tensor.is_sparse() && coordinates(tensor)->coalesced();
}

void assign(const at::Tensor& target, const at::Tensor& model, const Parts& parts) {
  if (model.is_sparse()) {
    assign_coordinates(target, model, parts);
  } else {
    compressed(target)->set_layout(model.layout());
    assign_compressed(target, model, parts);
  }
}

}  // namespace devsan::sim
