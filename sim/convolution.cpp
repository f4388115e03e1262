// On hardware cuDNN runs nearly every convolution, and PyTorch compares the operands before it calls cuDNN. Without
// cuDNN it would choose kernels by way of stubs that exist only in a build with CUDA; the CPU has its own for all.
#include "sim/convolution.h"

#include <ATen/TensorUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/core/stack.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/slow_conv3d_forward.h>
#include <torch/library.h>

#include <optional>
#include <string>
#include <vector>

#include "sim/fallback.h"

namespace devsan::sim {
namespace {

using at::native::ConvBackend;
using Arguments = at::ArrayRef<c10::IValue>;

// The order of _convolution's operands.
struct Convolution {
  explicit Convolution(Arguments arguments)
      : input(arguments[0].toTensor()),
        weight(arguments[1].toTensor()),
        bias(arguments[2].isTensor() ? arguments[2].toTensor() : at::Tensor()),
        transposed(arguments[6].toBool()) {}

  at::Tensor input, weight, bias;
  bool transposed;
};

// Raises what is wrong with the shapes.
ConvBackend backend_of(const Convolution& call, Arguments arguments) {
  TORCH_CHECK(call.weight.dim() > 2, "weight should have at least three dimensions");
  const auto symbols = [&](std::size_t index) {
    std::vector<c10::SymInt> numbers;
    for (const std::int64_t number : arguments[index].toIntVector()) numbers.emplace_back(number);
    return numbers;
  };
  const at::OptionalSymIntArrayRef bias_sizes =
      call.bias.defined() ? at::OptionalSymIntArrayRef(call.bias.sym_sizes()) : std::nullopt;
  return at::native::select_conv_backend(call.input, call.weight, call.bias, symbols(3), symbols(4), symbols(5),
                                         call.transposed, symbols(7), arguments[8].toInt(), bias_sizes);
}

void check_type(const Convolution& call, const at::Tensor& operand, const char* name, bool for_mkldnn) {
  if (!operand.defined() || call.input.options().type_equal(operand.options())) return;
  const std::string or_else =
      for_mkldnn ? std::string(" or input should be a MKLDNN tensor and ") + name + " is a dense tensor" : "";
  TORCH_CHECK(false, "Input type (", call.input.toString(), ") and ", name, " type (", operand.toString(),
              ") should be the same", or_else);
}

void check_types(const Convolution& call, bool for_mkldnn) {
  check_type(call, call.weight, "weight", for_mkldnn);
  check_type(call, call.bias, "bias", for_mkldnn);
  at::checkSameGPU("cudnn_convolution", at::TensorArg(call.input, "input", 1), at::TensorArg(call.weight, "weight", 2));
}

// For an input on the CPU PyTorch chooses among its own kernels; the weight then leads to CUDA's.
void check_host_input(const Convolution& call, ConvBackend backend) {
  const char* wrapper = nullptr;
  switch (backend) {
    case ConvBackend::Slow2d:
      wrapper = "wrapper_CUDA___slow_conv2d_forward";
      break;
    case ConvBackend::SlowDilated2d:
      wrapper = "wrapper_CUDA__slow_conv_dilated2d";
      break;
    case ConvBackend::SlowDilated3d:
      wrapper = "wrapper_CUDA__slow_conv_dilated3d";
      break;
    case ConvBackend::SlowTranspose2d:
      wrapper = "wrapper_CUDA_slow_conv_transpose2d";
      break;
    case ConvBackend::SlowTranspose3d:
      wrapper = "wrapper_CUDA__slow_conv_transpose3d";
      break;
    default:
      return;
  }
  std::optional<c10::Device> common;
  c10::impl::check_and_update_common_device(common, call.input, wrapper, "self");
  c10::impl::check_and_update_common_device(common, call.weight, wrapper, "weight");
  c10::impl::check_and_update_common_device(common, call.bias, wrapper, "bias");
}

bool is_mkldnn(ConvBackend backend) {
  return backend == ConvBackend::Mkldnn || backend == ConvBackend::MkldnnTranspose;
}

bool is_mixed(const Convolution& call) {
  const c10::Device device = call.input.device();
  return call.weight.device() != device || (call.bias.defined() && call.bias.device() != device);
}

void check_mixture(const Convolution& call, Arguments arguments) {
  const ConvBackend backend = backend_of(call, arguments);
  if (call.input.is_cpu()) {
    if (backend == ConvBackend::Slow3d) {
      at::slow_conv3d_forward(call.input, call.weight, call.weight.sizes().slice(2), call.bias,
                              arguments[3].toIntVector(), arguments[4].toIntVector());
    }
    check_host_input(call, backend);
  }
  check_types(call, is_mkldnn(backend));
}

void convolution(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  const Convolution call(arguments);
  if (is_mixed(call)) {
    check_mixture(call, arguments);
  } else {
    check_types(call, /*for_mkldnn=*/false);
  }
  run_on_host(op, keys, stack);
}

}  // namespace

void register_convolution() {
  static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  aten.impl("_convolution", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  aten.impl("convolution_backward", torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

}  // namespace devsan::sim
