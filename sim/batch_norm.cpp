#include "sim/batch_norm.h"

#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/TensorUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <limits>
#include <string_view>
#include <utility>

#include "sim/operands.h"

namespace devsan::sim {
namespace {

using c10::IValue;

constexpr double kMinEpsilon = 0;  // CUDNN_BN_MIN_EPSILON
// The largest batches that PyTorch gives to cuDNN.
constexpr std::int64_t kMaxTrained = 880801;
constexpr std::int64_t kMaxEvaluated = 65535;

thread_local bool t_is_cudnn = false;

struct BatchNorm {
  at::Tensor input, weight, bias, running_mean, running_var;
  bool training;
  double eps;

  bool has_statistics() const { return running_mean.defined() && running_var.defined(); }
};

at::Tensor tensor_of(const c10::FunctionSchema& schema, at::ArrayRef<IValue> arguments, std::string_view name) {
  const IValue* value = find_argument(schema, arguments, name);
  return value != nullptr && value->isTensor() ? value->toTensor() : at::Tensor();
}

BatchNorm batch_norm_of(const c10::OperatorHandle& op, at::ArrayRef<IValue> arguments) {
  const c10::FunctionSchema& schema = op.schema();
  const auto tensor = [&](std::string_view name) { return tensor_of(schema, arguments, name); };
  const IValue* training = find_argument(schema, arguments, "training");
  return {tensor("input"),
          tensor("weight"),
          tensor("bias"),
          tensor("running_mean"),
          tensor("running_var"),
          training == nullptr || training->toBool(),
          find_argument(schema, arguments, "eps")->toDouble()};
}

bool has_cudnn_dtypes(const BatchNorm& call) {
  const at::ScalarType input = call.input.scalar_type(), weight = call.weight.scalar_type();
  if (input == at::kBFloat16 || weight == at::kBFloat16) return false;
  return input != at::kHalf || weight == at::kFloat;
}

// PyTorch's conditions, on hardware that has cuDNN.
bool is_for_cudnn(const BatchNorm& call) {
  if (!at::globalContext().userEnabledCuDNN() || !call.input.is_cuda()) return false;
  if (!call.weight.defined() || !call.bias.defined() || !has_cudnn_dtypes(call)) return false;
  const bool no_statistics = !call.running_mean.defined() && !call.running_var.defined();
  if (!call.has_statistics() && !(no_statistics && call.training)) return false;
  return call.input.dim() >= 3 && call.input.size(0) <= (call.training ? kMaxTrained : kMaxEvaluated) &&
         call.eps >= kMinEpsilon && call.input.numel() < std::numeric_limits<std::int32_t>::max();
}

class Within {
 public:
  explicit Within(bool cudnn) : before_(std::exchange(t_is_cudnn, cudnn)) {}
  ~Within() { t_is_cudnn = before_; }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  bool before_;
};

// PyTorch's own kernel, which calls the normalization's parts.
void batch_norm(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  const Within within(is_for_cudnn(batch_norm_of(op, arguments)));
  op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, *stack);
}

// The running statistics are updated in place, by one iterator.
void check_statistics(const BatchNorm& call, std::int64_t channels) {
  at::DimVector shape{channels};
  for (const at::Tensor& running : {call.running_mean, call.running_var}) {
    shape = at::infer_size_dimvector(shape, running.sizes());
  }
  for (const at::Tensor& running : {call.running_mean, call.running_var}) {
    TORCH_CHECK(running.sizes() == at::IntArrayRef(shape), "output with shape ", running.sizes(),
                " doesn't match the broadcast shape ", at::IntArrayRef(shape));
  }
}

void check_accessible(const at::Tensor& operand) {
  TORCH_CHECK(!operand.defined() || operand.dim() == 1, "TensorAccessor expected 1 dims but tensor has ",
              operand.dim());
}

void check_native(const BatchNorm& call) {
  const std::int64_t channels = call.input.size(1);
  if (call.input.numel() == 0) return;
  if (call.training && call.has_statistics()) check_statistics(call, channels);
  const bool reads_rows = call.input.is_contiguous() && call.input.stride(1) != 1;
  if (!reads_rows) return;
  check_accessible(call.weight);
  check_accessible(call.bias);
  if (!call.training) check_accessible(call.running_mean);
}

void check_cudnn(const BatchNorm& call) {
  const std::int64_t channels = call.input.size(1);
  const at::TensorArg operands[] = {{call.weight, "weight", 2},
                                    {call.bias, "bias", 3},
                                    {call.running_mean, "running_mean", 4},
                                    {call.running_var, "running_var", 5}};
  for (const at::TensorArg& operand : operands) {
    if (operand->defined()) at::checkNumel("cudnn_batch_norm", operand, channels);
  }
}

}  // namespace

bool is_cudnn_batch_norm() noexcept {
  return t_is_cudnn;
}

void check_native_batch_norm(const c10::OperatorHandle& op, at::ArrayRef<IValue> arguments) {
  if (!t_is_cudnn) check_native(batch_norm_of(op, arguments));
}

void check_batch_norm_with_update(const c10::OperatorHandle& op, at::ArrayRef<IValue> arguments) {
  const BatchNorm call = batch_norm_of(op, arguments);
  if (is_for_cudnn(call)) {
    check_cudnn(call);
  } else {
    check_native(call);
  }
}

void register_batch_norm() {
  static torch::Library plain(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  static torch::Library autograd(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradCUDA, __FILE__, __LINE__);
  for (torch::Library* library : {&plain, &autograd}) {
    library->impl("_batch_norm_impl_index", torch::CppFunction::makeFromBoxedFunction<&batch_norm>());
  }
}

}  // namespace devsan::sim
