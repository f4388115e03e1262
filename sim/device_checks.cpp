#include "sim/device_checks.h"

#include <ATen/ExpandUtils.h>
#include <c10/core/WrapDimMinimal.h>
#include <c10/util/Exception.h>

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace devsan::sim {
namespace {

const at::Tensor& operand(const Call& call, std::string_view argument) {
  return *find_operand(call.operands, argument);
}

[[noreturn]] void raise_two_devices(c10::Device common, c10::Device other) {
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ", common, " and ",
              other, "!");
}

// ---- what TensorIterator checks

// It compares with the first operand that is not on the CPU.
std::optional<c10::Device> iterator_device(const Call& call) {
  for (const Operand& operand : call.operands) {
    if (!operand.tensor.is_cpu()) return operand.tensor.device();
  }
  return std::nullopt;
}

void check_iterator(const Call& call) {
  const std::optional<c10::Device> common = iterator_device(call);
  for (const Operand& operand : call.operands) {
    if (common && operand.tensor.device() != *common) raise_two_devices(*common, operand.tensor.device());
  }
}

bool is_input(const Call& call, const Operand& output) {
  for (const Operand& other : call.operands) {
    if (!is_output(*other.argument) && other.tensor.is_same(output.tensor)) return true;
  }
  return false;
}

// Shapes come before devices: those of the inputs go together, and an output that is one of them is as large as all.
void check_broadcast(const Call& call) {
  at::DimVector shape;
  for (const Operand& operand : call.operands) {
    if (!is_output(*operand.argument)) shape = at::infer_size_dimvector(shape, operand.tensor.sizes());
  }
  for (const Operand& operand : call.operands) {
    if (!is_written(*operand.argument) || !is_input(call, operand)) continue;
    TORCH_CHECK(operand.tensor.sizes() == at::IntArrayRef(shape), "output with shape ", operand.tensor.sizes(),
                " doesn't match the broadcast shape ", at::IntArrayRef(shape));
  }
}

void check_iterator_scalar(const Call& call) {
  check_broadcast(call);
  const std::optional<c10::Device> common = iterator_device(call);
  int numbers = 0;
  for (const Operand& operand : call.operands) {
    if (!common || operand.tensor.device() == *common) continue;
    const bool is_cpu_number = is_number(operand.tensor) && operand.tensor.is_cpu() && !is_written(*operand.argument);
    if (!is_cpu_number) raise_two_devices(*common, operand.tensor.device());
    TORCH_CHECK(++numbers <= 1, "Trying to pass too many CPU scalars to non-CPU kernel!");
  }
}

// ---- what single operators check

void check_any(const Call&) {}

// A meta function makes its outputs on the device of its first operand.
void check_outputs(const Call& call) {
  std::optional<c10::Device> device;
  for (const Operand& operand : call.operands) {
    if (!device && !is_output(*operand.argument)) device = operand.tensor.device();
  }
  for (const Operand& operand : call.operands) {
    TORCH_CHECK(!is_output(*operand.argument) || operand.tensor.device() == *device,
                "Expected out tensor to have device ", *device, ", but got ", operand.tensor.device(), " instead");
  }
}

// The names are those of PyTorch's function, since its message repeats the condition.
void check_same_as_out(const Call& call) {
  const at::Tensor &self = operand(call, "self"), &out = operand(call, "out");
  TORCH_CHECK(self.device() == out.device());
}

// `where` moves its 0-dim operands to the device of the result before it iterates.
void check_where(const Call& call) {
  const std::optional<c10::Device> common = iterator_device(call);
  for (const Operand& operand : call.operands) {
    if (!common || operand.tensor.device() == *common) continue;
    if (is_output(*operand.argument) || !is_number(operand.tensor)) raise_two_devices(*common, operand.tensor.device());
  }
}

void check_masked_fill(const Call& call) {
  const at::Tensor &self = operand(call, "self"), &mask = operand(call, "mask");
  const bool has_value = find_operand(call.operands, "value") != nullptr;
  TORCH_CHECK(!has_value || self.is_cuda(), "masked_fill_: Expected inputs to be on same device");
  TORCH_CHECK(self.device() == mask.device(), "expected self and mask to be on the same device, but got mask on ",
              mask.device(), " and self on ", self.device());
}

// The value becomes a number.
void check_index_fill(const Call& call) {
  if (const at::Tensor* value = find_operand(call.operands, "value")) {
    TORCH_CHECK(is_number(*value), "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
                value->dim(), " dimension(s).");
  }
  const at::Tensor &self = operand(call, "self"), &index = operand(call, "index");
  if (self.device() != index.device()) {
    raise_two_devices(self.is_cpu() ? index.device() : self.device(), self.is_cpu() ? self.device() : index.device());
  }
}

// Indices are moved to `self`.
void check_index_out(const Call& call) {
  const at::Tensor &self = operand(call, "self"), &out = operand(call, "out");
  if (self.device() != out.device()) {
    raise_two_devices(self.is_cpu() ? out.device() : self.device(), self.is_cpu() ? self.device() : out.device());
  }
}

// One mask and a single value on the CPU are a `masked_fill_` with a number.
bool fills_masked(const Call& call, const at::Tensor& self, const at::Tensor& values) {
  if (call.arguments[3].toBool() || values.numel() != 1 || !values.is_cpu()) return false;
  const at::Tensor* mask = nullptr;
  for (const Operand& operand : call.operands) {
    if (operand.argument->name() != "indices") continue;
    const at::ScalarType dtype = operand.tensor.scalar_type();
    if (mask != nullptr || (dtype != at::kByte && dtype != at::kBool)) return false;
    mask = &operand.tensor;
  }
  return mask != nullptr && mask->device() == self.device();
}

// Indices are moved to `self`, and so is a single value.
void check_index_put(const Call& call) {
  const at::Tensor &self = operand(call, "self"), &values = operand(call, "values");
  const std::size_t indices = call.arguments[1].toOptionalTensorList().size();
  TORCH_CHECK_INDEX(indices <= static_cast<std::size_t>(self.dim()), "too many indices for tensor of dimension ",
                    self.dim(), " (got ", indices, ")");
  if (is_number(values) || values.device() == self.device() || fills_masked(call, self, values)) return;
  TORCH_CHECK(!self.is_cuda() || !call.arguments[3].toBool(), "expected device ", self.device(), " but got device ",
              values.device(), " for value tensor");
  raise_errors_of_shape(call);
  raise_two_devices(self.is_cpu() ? values.device() : self.device(), self.is_cpu() ? self.device() : values.device());
}

void check_mode(const Call& call) {
  const c10::Device device = operand(call, "self").device();
  for (const char* output : {"values", "indices"}) {
    const c10::Device other = operand(call, output).device();
    TORCH_CHECK(other == device, "expected device '", device, "' but got '", other, "' for ", output, " output");
  }
}

// ---- what a kernel refuses of that which the check before it lets pass

// CUDA's loops read the device's memory alone, which they assert; the names are those of torch's own builds.
void check_loop_but(const Call& call, std::string_view number) {
  for (std::size_t position = 0; position < call.operands.size(); ++position) {
    const Operand& operand = call.operands[position];
    TORCH_CHECK(
        !operand.tensor.is_cpu() || operand.argument->name() == number,
        "iter.device(arg).is_cuda() INTERNAL ASSERT FAILED at "
        "\"/__w/pytorch/pytorch/aten/src/ATen/native/cuda/Loops.cuh\":119, please report a bug to PyTorch. argument ",
        position, ": expected a CUDA device but found ", operand.tensor.device());
  }
}

void check_loop(const Call& call) {
  check_loop_but(call, "");
}

void check_lerp(const Call& call) {
  check_loop_but(call, "weight");
}

void check_addcmul(const Call& call) {
  TORCH_CHECK(!operand(call, "self").is_cpu(),
              "CPU Scalar support for self argument is not supported when calling addcmul on CUDA tensors.");
  TORCH_CHECK(
      !operand(call, "tensor1").is_cpu(),
      "CPU Scalar support for tensor1 argument is not supported when calling addcmul on CUDA tensors. However, CPU "
      "Scalar support for tensor2 is supported, please swap your tensor1 and tensor2 terms.");
}

void check_mse_loss(const Call& call) {
  const c10::Device self = operand(call, "self").device(), target = operand(call, "target").device();
  if (self != target) raise_two_devices(self, target);
}

void check_searchsorted(const Call& call) {
  const at::Tensor* sorter = find_operand(call.operands, "sorter");
  const c10::Device boundaries = operand(call, "sorted_sequence").device();
  TORCH_CHECK(sorter == nullptr || sorter->device() == boundaries,
              "torch.searchsorted(): sorter and boundary tensors should have same device type, but got sorter tensor "
              "device type ",
              sorter->device(), " and input value tensor device type ", boundaries);
}

// The names are those of PyTorch's function, since its message repeats the condition.
void check_segment_reduce(const Call& call) {
  const at::Tensor& data = operand(call, "data");
  c10::maybe_wrap_dim(find_argument(call.op.schema(), call.arguments, "axis")->toInt(), data.dim());
  if (const at::Tensor* offsets = find_operand(call.operands, "offsets")) {
    const at::Tensor& offsets_value = *offsets;
    TORCH_CHECK(data.get_device() == offsets_value.get_device());
  }
  if (const at::Tensor* lengths = find_operand(call.operands, "lengths")) {
    const at::Tensor& lengths_value = *lengths;
    TORCH_CHECK(data.get_device() == lengths_value.get_device());
  }
}

using Rules = std::unordered_map<std::string, DeviceCheck>;

DeviceCheck find(const Rules& rules, const std::string& name) {
  const auto found = rules.find(name);
  return found == rules.end() ? nullptr : found->second;
}

constexpr DeviceCheck check_meta_iterator = &check_iterator_scalar;
constexpr DeviceCheck check_meta_outputs = &check_outputs;

}  // namespace

DeviceCheck find_device_rule(const c10::OperatorHandle& op, const std::string& name) {
  static const auto* rules = new Rules{
#define DEVSAN_DEVICE_RULE(name, rule) {name, &check_##rule},
#include "sim/device_rules.def"
#undef DEVSAN_DEVICE_RULE
  };
  const DeviceCheck rule = find(*rules, name);
  return rule != nullptr ? rule : find(*rules, op.operator_name().name);
}

DeviceCheck find_kernel_rule(const std::string& name) {
  static const auto* rules = new Rules{
#define DEVSAN_KERNEL_RULE(name, rule) {name, &check_##rule},
#include "sim/kernel_rules.def"
#undef DEVSAN_KERNEL_RULE
  };
  return find(*rules, name);
}

DeviceCheck find_meta_rule(const std::string& name) {
  static const auto* rules = new Rules{
#define DEVSAN_UNCHECKED_OPERATOR(name, meta) {name, check_meta_##meta},
#include "sim/unchecked_operators.def"
#undef DEVSAN_UNCHECKED_OPERATOR
  };
  return find(*rules, name);
}

}  // namespace devsan::sim
