// What traffic has to know of a tensor: on which side of the host and devices it is, and its memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>

#include "hooks/inprocess/events/extent.h"
#include "hooks/inprocess/events/pending_copies.h"
#include "hooks/torch_bridge/tensor_fields.h"

namespace devsan::hooks {

inline bool is_cuda(const c10::TensorImpl* tensor) noexcept {
  return is_cuda(TensorFields::device(tensor));
}
inline bool is_cpu(const c10::TensorImpl* tensor) noexcept {
  return (TensorFields::device(tensor) & 0xff) == static_cast<std::uint8_t>(c10::DeviceType::CPU);
}
inline const c10::TensorImpl* implementation(const at::Tensor& tensor) noexcept {
  return tensor.unsafeGetTensorImpl();
}

// Of a dense tensor with a storage of its own; 0 for every other kind.
std::uint64_t bytes_of(const c10::TensorImpl* tensor) noexcept;
// Its part of its storage; all of it for a tensor that keeps its elements some other way.
Extent memory_of(const c10::TensorImpl* tensor) noexcept;
// The address where its storage begins; of a symbolic tensor there is none.
const void* begin_of(const c10::TensorImpl* tensor) noexcept;
// True as well where nobody knows.
bool is_pinned(const c10::TensorImpl* tensor) noexcept;
// The stream that an operator on this tensor is queued on by the calling thread, by the name that DeviceWatch gives it.
StreamKey current_stream(const c10::TensorImpl* tensor) noexcept;

}  // namespace devsan::hooks
