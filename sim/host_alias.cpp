#include "sim/host_alias.h"

#include <c10/core/CPUAllocator.h>

#include "sim/allocator.h"
#include "sim/devices.h"

namespace devsan::sim {
namespace {

// A face keeps the storage alive that it is the face of: an operator may hold on to its operand.
void release_simulated(void* context) {
  delete static_cast<c10::Storage*>(context);
}

c10::Storage make_face(const c10::Storage& simulated) {
  void* data = const_cast<void*>(simulated.data());
  c10::DataPtr pointer(data, new c10::Storage(simulated), &release_simulated, c10::DeviceType::CPU);
  return {c10::Storage::use_byte_size_t(), simulated.nbytes(), std::move(pointer), c10::GetCPUAllocator(),
          simulated.resizable()};
}

at::Tensor with_storage(const at::Tensor& shape, c10::Storage storage, c10::DispatchKey key) {
  at::Tensor result =
      at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), shape.dtype());
  c10::TensorImpl* impl = result.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(shape.sizes(), shape.strides(), shape.storage_offset());
  if (shape.is_conj()) impl->_set_conj(true);
  if (shape.is_neg()) impl->_set_neg(true);
  return result;
}

void check_strided(const at::Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.layout() == at::kStrided && !tensor.is_nested(),
                              "devsan's simulated CUDA devices hold dense tensors only, and this operator takes or "
                              "gives a tensor of layout ",
                              tensor.layout());
}

bool same_shape(const at::Tensor& a, const at::Tensor& b) {
  return a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

}  // namespace

c10::Storage HostAliases::alias_storage(const c10::Storage& simulated) {
  for (const auto& [known, host] : storages_) {
    if (known.is_alias_of(simulated)) return host;
  }
  storages_.emplace_back(simulated, make_face(simulated));
  return storages_.back().second;
}

at::Tensor HostAliases::alias(const at::Tensor& simulated) {
  for (const auto& [known, host] : tensors_) {
    if (known.is_same(simulated)) return host;
  }
  check_strided(simulated);
  tensors_.emplace_back(simulated, with_storage(simulated, alias_storage(simulated.storage()), c10::DispatchKey::CPU));
  return tensors_.back().second;
}

c10::Storage HostAliases::simulated_storage(const c10::Storage& host, c10::Device device) {
  for (const auto& [simulated, known] : storages_) {
    if (known.is_alias_of(host)) return simulated;
  }
  c10::StorageImpl* impl = host.unsafeGetStorageImpl();
  const std::size_t bytes = host.nbytes();
  c10::DataPtr memory;
  if (host.use_count() == 1) {
    memory = impl->set_data_ptr(c10::DataPtr(nullptr, c10::DeviceType::CPU));
  } else {  // somebody else holds this memory too, such as a cache of the operator's own
    memory =
        c10::DataPtr(const_cast<void*>(host.data()), new c10::Storage(host), &release_simulated, c10::DeviceType::CPU);
  }
  c10::Storage made(c10::Storage::use_byte_size_t(), bytes, adopt_host_memory(std::move(memory), bytes, device.index()),
                    device_allocator(), true);
  storages_.emplace_back(made, host);  // a further result may be a view of this one
  return made;
}

at::Tensor HostAliases::simulated(const at::Tensor& host, c10::Device device) {
  if (!host.defined() || !host.device().is_cpu()) return host;
  for (const auto& [simulated, known] : tensors_) {
    if (known.is_same(host)) return simulated;
  }
  check_strided(host);
  return with_storage(host, simulated_storage(host.storage(), device), c10::DispatchKey::CUDA);
}

void HostAliases::write_back(const at::Tensor& simulated) {
  const at::Tensor host = alias(simulated);
  const c10::Storage& to = simulated.storage();
  const c10::Storage& from = host.storage();
  if (from.data() != to.data()) {
    c10::StorageImpl* source = from.unsafeGetStorageImpl();
    const std::size_t bytes = from.nbytes();
    c10::DataPtr memory = source->set_data_ptr(c10::DataPtr(nullptr, c10::DeviceType::CPU));
    to.unsafeGetStorageImpl()->set_data_ptr_noswap(
        adopt_host_memory(std::move(memory), bytes, simulated.device().index()));
    to.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
  if (!same_shape(simulated, host)) {
    simulated.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
  }
}

at::Tensor host_alias(const at::Tensor& simulated) {
  if (!is_simulated(simulated)) return simulated;
  check_strided(simulated);
  return with_storage(simulated, make_face(simulated.storage()), c10::DispatchKey::CPU);
}

}  // namespace devsan::sim
