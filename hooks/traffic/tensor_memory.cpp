#include "hooks/traffic/tensor_memory.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace devsan::hooks {

std::uint64_t bytes_of(const c10::TensorImpl* tensor) noexcept {
  if (TensorFields::symbolic(tensor) || TensorFields::storage(tensor) == nullptr) return 0;
  std::uint64_t elements = 1;
  for (const std::int64_t size : TensorFields::sizes(tensor)) elements *= static_cast<std::uint64_t>(size);
  return elements * TensorFields::dtype(tensor).itemsize();
}

Extent memory_of(const c10::TensorImpl* tensor) noexcept {
  const c10::StorageImpl* storage = TensorFields::storage(tensor);
  if (storage == nullptr || TensorFields::symbolic(tensor)) return {storage};
  const auto sizes = TensorFields::sizes(tensor);
  const auto strides = TensorFields::strides(tensor);
  return extent_of(storage, TensorFields::dtype(tensor).itemsize(), TensorFields::storage_offset(tensor),
                   {sizes.data(), sizes.size()}, {strides.data(), strides.size()});
}

const void* begin_of(const c10::TensorImpl* tensor) noexcept {
  c10::StorageImpl* storage = const_cast<c10::StorageImpl*>(TensorFields::storage(tensor));
  return storage != nullptr ? storage->_mutable_data_ptr_no_checks().get() : nullptr;
}

bool is_pinned(const c10::TensorImpl* tensor) noexcept {
  try {
    return at::detail::getCUDAHooks().isPinnedPtr(TensorFields::storage(tensor)->data());
  } catch (...) {  // no such device any more
    return true;
  }
}

bool current_stream(const c10::TensorImpl* tensor, StreamKey* stream) noexcept {
  try {
    const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
    const c10::Stream current = guard.getStream(device_of_key(TensorFields::device(tensor)));
    *stream = {current.device_index(), current.id()};
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace devsan::hooks
