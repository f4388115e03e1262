// On hardware cuDNN runs nearly every convolution, and PyTorch compares the operands before it calls cuDNN. Without
// cuDNN it would choose kernels by way of stubs that exist only in a build with CUDA; the CPU has its own for all.
#include "sim/convolution.h"

#include <ATen/TensorUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_convolution_native.h>
#include <torch/library.h>

#include "sim/fallback.h"
#include "sim/host_alias.h"

namespace devsan::sim {
namespace {

void check_operands(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  TORCH_CHECK(input.options().type_equal(weight.options()), "Input type (", input.toString(), ") and weight type (",
              weight.toString(), ") should be the same");
  TORCH_CHECK(!bias.defined() || input.options().type_equal(bias.options()), "Input type (", input.toString(),
              ") and bias type (", bias.toString(), ") should be the same");
  at::checkSameGPU("cudnn_convolution", at::TensorArg(input, "input", 1), at::TensorArg(weight, "weight", 2));
}

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, std::int64_t groups, bool benchmark, bool deterministic,
                       bool cudnn_enabled, bool allow_tf32) {
  const at::Tensor given_bias = bias.value_or(at::Tensor());
  check_operands(input, weight, given_bias);
  HostAliases aliases;
  const at::Tensor host_bias = given_bias.defined() ? aliases.alias(given_bias) : given_bias;
  const at::Tensor result =
      at::native::_convolution(aliases.alias(input), aliases.alias(weight), host_bias, stride, padding, dilation,
                               transposed, output_padding, groups, benchmark, deterministic, cudnn_enabled, allow_tf32);
  return aliases.simulated(result, input.device());
}

}  // namespace

void register_convolution() {
  static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  aten.impl("_convolution", TORCH_FN(convolution));
  aten.impl("convolution_backward", torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

}  // namespace devsan::sim
