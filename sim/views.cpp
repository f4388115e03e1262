#include "sim/views.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DefaultDtype.h>
#include <torch/library.h>

#include <algorithm>

#include "sim/allocator.h"
#include "sim/capture.h"
#include "sim/devices.h"
#include "sim/guarded_pages.h"
#include "sim/host_alias.h"
#include "sim/kernel_words.h"
#include "sim/late_copies.h"

namespace devsan::sim {
namespace {

constexpr c10::DispatchKeySet kDenseKeys{c10::DispatchKey::CUDA};

void check_factory(std::optional<at::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(at::kStrided) == at::kStrided,
                              "devsan's simulated CUDA devices hold dense tensors only, not layout ", *layout);
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

at::ScalarType or_default(std::optional<at::ScalarType> dtype) {
  return dtype.value_or(c10::get_default_dtype_as_scalartype());
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                 std::optional<at::Device> device, std::optional<bool> pin_memory,
                 std::optional<at::MemoryFormat> memory_format) {
  check_factory(layout, pin_memory);
  const CurrentDevice on(resolve_device(device).index());
  return at::detail::empty_generic(size, device_allocator(), kDenseKeys, or_default(dtype), memory_format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout> layout, std::optional<at::Device> device,
                         std::optional<bool> pin_memory) {
  check_factory(layout, pin_memory);
  const CurrentDevice on(resolve_device(device).index());
  return at::detail::empty_strided_generic(size, stride, device_allocator(), kDenseKeys, or_default(dtype));
}

// A gradient known to be zero: it has a shape and a device, but no memory.
class NoMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t) override { return {nullptr, {kSimulatedType, current_device()}}; }
  void copy_data(void*, const void*, std::size_t) const override {
    TORCH_INTERNAL_ASSERT(false, "a zero tensor has no memory to copy");
  }
};

at::Tensor efficient_zero_tensor(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                                 std::optional<at::Layout> layout, std::optional<at::Device> device,
                                 std::optional<bool> pin_memory) {
  check_factory(layout, pin_memory);
  const CurrentDevice on(resolve_device(device).index());
  static auto* no_memory = new NoMemory();
  return at::detail::empty_generic(size, no_memory, kDenseKeys | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor),
                                   or_default(dtype), std::nullopt);
}

at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  check_context();
  const bool captured = is_capturing();
  if (captured) capture_copy(self, source, non_blocking);
  if (!captured && non_blocking && take_late_copy(self, source)) return self;
  at::Tensor host = host_alias(self);
  at::native::copy_(host, host_alias(source), non_blocking);
  if (!captured) note_done_copy(self, source, non_blocking);
  return self;
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  check_not_capturing();
  check_context();
  host_waits_for(self.device());
  return at::native::_local_scalar_dense_cpu(host_alias(self));
}

// Where the CPU's own functions make a storage larger they copy what it holds, past the guard of its pages: so it is
// large enough before they are called. A size that they refuse is left to them.
void make_room(const at::Storage& storage, std::size_t item_bytes, std::int64_t offset, at::IntArrayRef size,
               at::OptionalIntArrayRef stride) {
  const auto is_there = [](std::int64_t length) { return length > 0; };
  if (!pages_are_guarded() || !storage || offset < 0 || !std::ranges::all_of(size, is_there)) return;
  if (stride && stride->size() != size.size()) return;
  const auto first = static_cast<std::size_t>(offset);
  const std::size_t bytes = stride ? at::detail::computeStorageNbytes(size, *stride, item_bytes, first)
                                   : at::detail::computeStorageNbytesContiguous(size, item_bytes, first);
  if (bytes > storage.nbytes()) resize_storage(*storage.unsafeGetStorageImpl(), bytes);
}

// The CPU's own functions below touch only sizes, strides and the storage's allocator, which allocates on the thread's
// current device.
const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> memory_format) {
  const CurrentDevice on(self.device().index());
  make_room(self.storage(), self.dtype().itemsize(), self.storage_offset(), size, std::nullopt);
  return at::native::resize_(self, size, memory_format);
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, std::int64_t storage_offset, at::IntArrayRef size,
                        at::IntArrayRef stride) {
  const CurrentDevice on(self.device().index());
  make_room(source, self.dtype().itemsize(), storage_offset, size,
            stride.empty() ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(stride));
  return at::native::set_storage_cpu_(self, std::move(source), storage_offset, size, stride);
}

at::Tensor& set_empty(at::Tensor& self) {
  const CurrentDevice on(self.device().index());
  at::Storage nothing(at::Storage::use_byte_size_t(), 0, device_allocator()->allocate(0), device_allocator(), true);
  return at::native::set_storage_cpu_(self, std::move(nothing), 0, {0}, {});
}

void record_stream(at::Tensor&, at::Stream) {}  // memory is never in use after an operator returned

// Whether cuDNN or MIOpen computes the loss: neither is there.
bool no_library_ctc_loss(const at::Tensor&, const at::Tensor&, at::IntArrayRef, at::IntArrayRef, std::int64_t) {
  return false;
}

bool no_library_ctc_loss_of_tensors(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                    std::int64_t) {
  return false;
}

}  // namespace

void register_views() {
  static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  aten.impl("empty.memory_format", TORCH_FN(empty));
  aten.impl("empty_strided", TORCH_FN(empty_strided));
  aten.impl("_efficientzerotensor", TORCH_FN(efficient_zero_tensor));
  aten.impl("copy_", TORCH_FN(copy));
  aten.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  aten.impl("resize_", TORCH_FN(resize));
  aten.impl("set_", TORCH_FN(set_empty));
  aten.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  aten.impl("set_.source_Storage",
            TORCH_FN((static_cast<at::Tensor& (*)(at::Tensor&, at::Storage)>(at::native::set_))));
  aten.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  aten.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  aten.impl("view", TORCH_FN((static_cast<at::Tensor (*)(const at::Tensor&, at::IntArrayRef)>(at::native::view))));
  aten.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  aten.impl("unfold", TORCH_FN(at::native::unfold));
  aten.impl("alias", TORCH_FN(at::native::alias));
  aten.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  aten.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  aten.impl("record_stream", TORCH_FN(record_stream));
  aten.impl("_use_cudnn_ctc_loss", TORCH_FN(no_library_ctc_loss));
  aten.impl("_use_cudnn_ctc_loss.Tensor", TORCH_FN(no_library_ctc_loss_of_tensors));
  aten.impl("_use_miopen_ctc_loss", TORCH_FN(no_library_ctc_loss));
  aten.impl("_use_miopen_ctc_loss.Tensor", TORCH_FN(no_library_ctc_loss_of_tensors));
}

}  // namespace devsan::sim
