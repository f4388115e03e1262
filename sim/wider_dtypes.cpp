#include "sim/wider_dtypes.h"

#include <ATen/core/Tensor.h>

#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

namespace devsan::sim {
namespace {

using c10::IValue;
using torch::jit::Stack;

using Widening = std::optional<at::ScalarType> (*)(at::ScalarType);

std::optional<at::ScalarType> half_to_float(at::ScalarType dtype) {
  return c10::isReducedFloatingType(dtype) ? std::optional(at::kFloat) : std::nullopt;
}

// Below 2**53 a bin is the same whether it is found with integers, as by CUDA's kernel, or with doubles.
std::optional<at::ScalarType> integer_to_double(at::ScalarType dtype) {
  return c10::isIntegralType(dtype, /*includeBool=*/false) ? std::optional(at::kDouble) : std::nullopt;
}

struct Entry {
  const char* name;
  const char* overload;
  Widening widening;
};

// PyTorch's own list (op_db, dtypesIfCUDA) and its sources; a transform or a solver that wants complex halves is not
// here.
constexpr Entry kEntries[] = {
    {"aten::histc", "", integer_to_double},
    {"aten::histc", "out", integer_to_double},
    {"aten::avg_pool3d", "", half_to_float},
    {"aten::avg_pool3d", "out", half_to_float},
    {"aten::avg_pool3d_backward", "", half_to_float},
    {"aten::avg_pool3d_backward", "grad_input", half_to_float},
    {"aten::multi_margin_loss", "", half_to_float},
    {"aten::multi_margin_loss", "out", half_to_float},
    {"aten::multi_margin_loss_backward", "", half_to_float},
    {"aten::multi_margin_loss_backward", "grad_input", half_to_float},
    {"aten::multilabel_margin_loss_forward", "", half_to_float},
    {"aten::multilabel_margin_loss_forward", "output", half_to_float},
    {"aten::multilabel_margin_loss_backward", "", half_to_float},
    {"aten::multilabel_margin_loss_backward", "grad_input", half_to_float},
    {"aten::_upsample_bilinear2d_aa", "", half_to_float},
    {"aten::_upsample_bilinear2d_aa", "out", half_to_float},
    {"aten::_upsample_bilinear2d_aa_backward", "", half_to_float},
    {"aten::_upsample_bilinear2d_aa_backward", "grad_input", half_to_float},
    {"aten::_upsample_bicubic2d_aa", "", half_to_float},
    {"aten::_upsample_bicubic2d_aa", "out", half_to_float},
    {"aten::_upsample_bicubic2d_aa_backward", "", half_to_float},
    {"aten::_upsample_bicubic2d_aa_backward", "grad_input", half_to_float},
    {"aten::rrelu_with_noise", "", half_to_float},
    {"aten::rrelu_with_noise", "out", half_to_float},
    {"aten::rrelu_with_noise_", "", half_to_float},
};

std::unordered_map<c10::OperatorHandle, Widening>& widenings() {
  static auto* all = new std::unordered_map<c10::OperatorHandle, Widening>();
  return *all;
}

struct Written {
  at::Tensor narrow;
  at::Tensor wide;
};

std::vector<Written> widen(const c10::FunctionSchema& schema, Stack* stack, at::ScalarType narrow,
                           at::ScalarType wide) {
  std::vector<Written> written;
  const std::size_t count = schema.arguments().size();
  for (std::size_t index = 0; index < count; ++index) {
    IValue& value = torch::jit::peek(*stack, index, count);
    // CUDA's kernels of whole numbers cut their limits to them.
    if (value.isDouble() && c10::isIntegralType(narrow, /*includeBool=*/false)) value = std::trunc(value.toDouble());
    if (!value.isTensor() || !value.toTensor().defined() || value.toTensor().scalar_type() != narrow) continue;
    const at::Tensor operand = value.toTensor();
    value = operand.to(wide);
    const c10::AliasInfo* alias = schema.arguments()[index].alias_info();
    if (alias != nullptr && alias->isWrite()) written.push_back({operand, value.toTensor()});
  }
  return written;
}

at::Tensor narrowed(const at::Tensor& result, const std::vector<Written>& written, at::ScalarType narrow,
                    at::ScalarType wide) {
  for (const Written& operand : written) {
    if (operand.wide.is_same(result)) return operand.narrow;
  }
  return result.defined() && result.scalar_type() == wide ? result.to(narrow) : result;
}

}  // namespace

std::optional<at::ScalarType> wider_dtype(const c10::OperatorHandle& op, const Stack& stack) {
  const auto found = widenings().find(op);
  if (found == widenings().end()) return std::nullopt;
  const std::size_t count = op.schema().arguments().size();
  const IValue& first = torch::jit::peek(stack, 0, count);
  return first.isTensor() && first.toTensor().defined() ? found->second(first.toTensor().scalar_type()) : std::nullopt;
}

void call_in(at::ScalarType wide, const c10::OperatorHandle& op, c10::DispatchKeySet key, Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const at::ScalarType narrow = torch::jit::peek(*stack, 0, schema.arguments().size()).toTensor().scalar_type();
  const std::vector<Written> written = widen(schema, stack, narrow, wide);
  op.redispatchBoxed(key, stack);
  for (const Written& operand : written) {
    if (!operand.narrow.sizes().equals(operand.wide.sizes())) operand.narrow.resize_(operand.wide.sizes());
    operand.narrow.copy_(operand.wide);
  }
  const std::size_t count = schema.returns().size();
  for (std::size_t index = 0; index < count; ++index) {
    IValue& value = torch::jit::peek(*stack, index, count);
    if (value.isTensor()) value = narrowed(value.toTensor(), written, narrow, wide);
  }
}

void register_wider_dtypes() {
  for (const Entry& entry : kEntries) {
    // A release of PyTorch may lack one.
    const auto op = c10::Dispatcher::singleton().findSchema({entry.name, entry.overload});
    if (op) widenings().emplace(*op, entry.widening);
  }
}

}  // namespace devsan::sim
