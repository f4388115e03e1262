#include "hooks/torch_bridge/tensor_memory.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <optional>

#include "hooks/inprocess/common/runtime.h"

namespace devsan::hooks {

namespace {

// CUDA's own name of a stream. c10 looks it up and calls nothing. A torch of before 2.10 does not tell it but for the
// default stream.
template <class Guard>
std::optional<std::uint64_t> handle_of(const Guard& guard, const c10::Stream& stream) {
  if constexpr (requires { guard.getStreamNativeHandle(stream); }) {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(guard.getStreamNativeHandle(stream)));
  } else {
    return stream.id() == 0 ? std::optional<std::uint64_t>(0) : std::nullopt;
  }
}

}  // namespace

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
  if (!devices_are_simulated()) return !runtime.host->device_calls->pageable(begin_of(tensor));
  try {
    return at::detail::getCUDAHooks().isPinnedPtr(TensorFields::storage(tensor)->data());
  } catch (...) {  // no such device any more
    return true;
  }
}

bool is_empty(const c10::TensorImpl* tensor) noexcept {
  if (TensorFields::symbolic(tensor)) return false;
  const auto sizes = TensorFields::sizes(tensor);
  return std::ranges::find(sizes, 0) != sizes.end();
}

bool is_pinned_host_memory(const c10::TensorImpl* tensor) noexcept {
  if (!is_cpu(tensor) || TensorFields::storage(tensor) == nullptr || begin_of(tensor) == nullptr) return false;
  if (runtime.host->pinned_bytes->load(std::memory_order_relaxed) == 0) return false;
  if (!devices_are_simulated() && runtime.host->device_calls->captures()) return false;
  return is_pinned(tensor);
}

// While a stream is being captured its work is not carried out, and no order can be told from it.
StreamKey current_stream(const c10::TensorImpl* tensor) noexcept {
  constexpr StreamKey kUnknown{-1, 0};
  const DeviceCalls& calls = *runtime.host->device_calls;
  try {
    const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
    const c10::Stream current = guard.getStream(device_of_key(TensorFields::device(tensor)));
    if (devices_are_simulated()) return {current.device_index(), current.id()};
    const auto handle = handle_of(guard, current);
    if (!handle || calls.captures()) return kUnknown;
    StreamKey key;
    key.device = calls.stream_of(*handle, current.device_index(), &key.stream);
    return key;
  } catch (...) {
    return kUnknown;
  }
}

}  // namespace devsan::hooks
