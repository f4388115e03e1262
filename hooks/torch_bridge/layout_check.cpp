#include "hooks/torch_bridge/layout_check.h"

#include <ATen/Operators.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "hooks/torch_bridge/tensor_fields.h"

namespace devsan::hooks {

namespace {

constexpr std::int64_t kRows = 5;
constexpr std::int64_t kColumns = 3;
constexpr std::int64_t kRow = 4;  // the numbers of elements of rows before it differ from all others here

at::Tensor make_tensor() {
  return at::_ops::empty_memory_format::call(c10::SymIntArrayRef({kRows, kColumns}), c10::ScalarType::Double,
                                             c10::Layout::Strided, c10::Device(c10::DeviceType::CPU), false,
                                             std::nullopt);
}

bool sizes_agree(const at::Tensor& tensor) {
  const c10::IntArrayRef sizes = TensorFields::sizes(tensor.unsafeGetTensorImpl());
  const c10::IntArrayRef strides = TensorFields::strides(tensor.unsafeGetTensorImpl());
  if (sizes.size() != strides.size()) return false;
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    const auto at = static_cast<std::int64_t>(dim);
    if (at::_ops::size_int::call(tensor, at) != sizes[dim] || at::_ops::stride_int::call(tensor, at) != strides[dim]) {
      return false;
    }
  }
  return at::_ops::sym_numel::call(tensor).guard_int(__FILE__, __LINE__) == c10::multiply_integers(sizes);
}

// TensorBase::toString() is torch's own code: "CPUDoubleType".
bool kind_agrees(const at::Tensor& tensor) {
  const DeviceKey device = TensorFields::device(tensor.unsafeGetTensorImpl());
  return device == device_key(c10::Device(c10::DeviceType::CPU)) &&
         TensorFields::dtype(tensor.unsafeGetTensorImpl()) == caffe2::TypeMeta::Make<double>() &&
         std::string_view(tensor.toString()) == "CPUDoubleType";
}

bool storages_agree(const at::Tensor& tensor, const at::Tensor& row) {
  const c10::TensorImpl* whole = tensor.unsafeGetTensorImpl();
  const c10::TensorImpl* part = row.unsafeGetTensorImpl();
  return TensorFields::storage(whole) != nullptr && TensorFields::storage(whole) == TensorFields::storage(part) &&
         TensorFields::storage(whole)->nbytes() == kRows * kColumns * sizeof(double) &&
         TensorFields::storage_offset(part) == at::_ops::sym_storage_offset::call(row).guard_int(__FILE__, __LINE__) &&
         TensorFields::storage_offset(part) == kRow * kColumns;
}

bool autograd_agrees(const at::Tensor& tensor) {
  c10::TensorImpl* const fields = tensor.unsafeGetTensorImpl();
  if (TensorFields::may_have_node(fields)) return false;
  fields->set_requires_grad(true);
  return fields->requires_grad() && TensorFields::may_have_node(fields);
}

}  // namespace

const char* wrongly_read_of_tensors() noexcept {
  try {
    const at::Tensor tensor = make_tensor();
    // First what tells whether the others can be asked.
    if (!kind_agrees(tensor)) return "they misread the device of a tensor";
    if (!sizes_agree(tensor)) return "they misread the sizes of a tensor";
    const at::Tensor row = at::_ops::select_int::call(tensor, 0, c10::SymInt(kRow));
    if (!sizes_agree(row)) return "they misread the sizes of a tensor";
    if (!storages_agree(tensor, row)) return "they misread the storage of a tensor";
    return autograd_agrees(tensor) ? nullptr : "they misread what autograd knows of a tensor";
  } catch (...) {
    return "its operators fail where they are called";
  }
}

}  // namespace devsan::hooks
