#include "sim/kernel_shapes.h"

#include <ATen/ExpandUtils.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/library.h>

#include <optional>

#include "sim/batch_norm.h"
#include "sim/fallback.h"
#include "sim/operands.h"

namespace devsan::sim {
namespace {

using c10::IValue;
using Arguments = at::ArrayRef<IValue>;

// In place `self` is not expanded to the size of the product.
void check_addr(const c10::OperatorHandle& op, Arguments arguments) {
  const at::Tensor &self = arguments[0].toTensor(), &vec1 = arguments[1].toTensor(), &vec2 = arguments[2].toTensor();
  const IValue* out = find_argument(op.schema(), arguments, "out");
  if (vec1.dim() != 1 || vec2.dim() != 1 || !out->toTensor().is_same(self)) return;
  TORCH_CHECK(self.dim() == 2, "2D tensor expected, got ", self.dim(), "D tensor for input");
  TORCH_CHECK(self.size(0) == vec1.size(0) && self.size(1) == vec2.size(0), "size mismatch, input: ", self.sizes(),
              ", v1: ", vec1.sizes(), ", v2: ", vec2.sizes());
}

// The mask is expanded first.
void check_masked(const c10::OperatorHandle& op, Arguments arguments) {
  const at::Tensor &self = arguments[0].toTensor(), &mask = arguments[1].toTensor();
  const IValue* value = find_argument(op.schema(), arguments, "value");
  const bool has_number = value == nullptr || !value->isTensor() || is_number(value->toTensor());
  if (has_number && mask.scalar_type() == at::kBool) mask.expand(self.sizes());
}

// The number of slices is asked for before the shape is checked.
void check_max_pool3d(const c10::OperatorHandle&, Arguments arguments) {
  arguments[0].toTensor().size(-4);
}

// The shape that leading indices select; nothing for masks, and for indices with gaps, which take their places
// elsewhere.
std::optional<at::DimVector> selected_shape(const at::Tensor& self, const IValue& indices) {
  at::DimVector shape;
  const auto list = indices.toOptionalTensorList();
  for (std::size_t position = 0; position < list.size(); ++position) {
    const std::optional<at::Tensor> index = list.get(position);
    if (!index || !index->defined() || index->scalar_type() != at::kLong) return std::nullopt;
    if (!at::are_expandable(shape, index->sizes())) return std::nullopt;
    shape = at::infer_size_dimvector(shape, index->sizes());
  }
  for (auto dim = static_cast<std::int64_t>(list.size()); dim < self.dim(); ++dim) shape.push_back(self.size(dim));
  return shape;
}

// To accumulate, values are expanded to what the indices select.
void check_index_put(const c10::OperatorHandle&, Arguments arguments) {
  const at::Tensor &self = arguments[0].toTensor(), &values = arguments[2].toTensor();
  const bool accumulate = arguments[3].toBool();
  if (!accumulate || !self.is_cuda()) return;
  const std::optional<at::DimVector> shape = selected_shape(self, arguments[1]);
  if (shape) values.expand(*shape);
}

template <ArgumentCheck check>
void check_and_run_on_host(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  run_on_host_after(check, op, keys, stack);
}

template <ArgumentCheck check>
void put(torch::Library& aten, const char* name) {
  if (!c10::Dispatcher::singleton().findSchema(torch::jit::parseName(name))) return;  // an operator of other releases
  aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&check_and_run_on_host<check>>());
}

}  // namespace

void register_kernel_shapes() {
  static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
#define DEVSAN_KERNEL_SHAPES(name, rule) put<&check_##rule>(aten, name);
#include "sim/kernel_shapes.def"
#undef DEVSAN_KERNEL_SHAPES
}

}  // namespace devsan::sim
