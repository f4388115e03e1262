// Reads a tensor's fields without asking the tensor: no virtual call, no Python, no reference count. A subclass with
// its own idea of device, sizes or storage (FakeTensor, nested) is read as what dispatch sees in it; of functorch's
// wrappers and of sparse tensors, which have none, the storage of what they wrap or of their values is asked for by
// name.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "hooks/inprocess/bridge/tensor_facts.h"

namespace devsan::hooks {

inline DeviceKey device_key(c10::Device device) noexcept {
  return std::uint32_t{0x10000} | std::uint32_t{static_cast<std::uint8_t>(device.type())} |
         std::uint32_t{static_cast<std::uint8_t>(device.index())} << 8;
}

inline c10::Device device_of_key(DeviceKey key) noexcept {
  return c10::Device(static_cast<c10::DeviceType>(key & 0xff),
                     static_cast<c10::DeviceIndex>(static_cast<std::int8_t>(key >> 8 & 0xff)));
}

inline bool is_cuda(DeviceKey device) noexcept {
  return (device & 0xff) == static_cast<std::uint8_t>(c10::DeviceType::CUDA);
}

// Of a tensor that has no storage of its own: that of the innermost value, where torch.func wraps one (vmap in
// BatchedTensorImpl, grad and its relatives in TensorWrapper, one in another where they are nested), and that of a
// sparse tensor's values; else null.
[[gnu::cold]] const c10::StorageImpl* inner_storage(const c10::TensorImpl* tensor) noexcept;

// TensorImpl::autograd_meta_ is private, and its accessor a call. An explicit instantiation may name private members.
using AutogradMeta = std::unique_ptr<c10::AutogradMetaInterface>;
AutogradMeta c10::TensorImpl::*autograd_meta_member() noexcept;
template <AutogradMeta c10::TensorImpl::*Member>
struct AutogradMetaMember {
  friend AutogradMeta c10::TensorImpl::*autograd_meta_member() noexcept { return Member; }
};
template struct AutogradMetaMember<&c10::TensorImpl::autograd_meta_>;

// The fields are protected, for subclasses; this one is never instantiated.
struct TensorFields : c10::TensorImpl {
  static DeviceKey device(const c10::TensorImpl* tensor) noexcept {
    const auto& device = tensor->*(&TensorFields::device_opt_);
    return device.has_value() ? device_key(*device) : 0;
  }
  static std::size_t dims(const c10::TensorImpl* tensor) noexcept {
    return (tensor->*(&TensorFields::sizes_and_strides_)).size();
  }
  static c10::IntArrayRef sizes(const c10::TensorImpl* tensor) noexcept {
    return (tensor->*(&TensorFields::sizes_and_strides_)).sizes_arrayref();
  }
  static c10::IntArrayRef strides(const c10::TensorImpl* tensor) noexcept {
    return (tensor->*(&TensorFields::sizes_and_strides_)).strides_arrayref();
  }
  // In elements.
  static std::int64_t storage_offset(const c10::TensorImpl* tensor) noexcept {
    return tensor->*(&TensorFields::storage_offset_);
  }
  static bool symbolic(const c10::TensorImpl* tensor) noexcept { return tensor->has_symbolic_sizes_strides(); }
  static c10::StorageImpl* storage(const c10::TensorImpl* tensor) noexcept {
    return (tensor->*(&TensorFields::storage_)).unsafeGetStorageImpl();
  }
  // A plain tensor's own, or that of what a wrapper of torch.func or a sparse tensor holds.
  static const c10::StorageImpl* storage_behind(const c10::TensorImpl* tensor) noexcept {
    const c10::StorageImpl* own = storage(tensor);
    if (own == nullptr) [[unlikely]]
      return inner_storage(tensor);
    return own;
  }
  // False: autograd has no node for this tensor. A wrapper, which has no storage, may hold one that it has.
  static bool may_have_node(const c10::TensorImpl* tensor) noexcept {
    return storage(tensor) == nullptr || (tensor->*autograd_meta_member()) != nullptr;
  }
  static caffe2::TypeMeta dtype(const c10::TensorImpl* tensor) noexcept { return tensor->*(&TensorFields::data_type_); }
};

inline bool is_cpu_scalar(const c10::TensorImpl* tensor, DeviceKey device) noexcept {
  return (device & 0xff) == static_cast<std::uint8_t>(c10::DeviceType::CPU) && TensorFields::dims(tensor) == 0;
}

}  // namespace devsan::hooks
