// On hardware cuDNN runs nearly every convolution, and PyTorch compares the operands before it calls cuDNN. Without
// cuDNN it would choose kernels by way of stubs that exist only in a build with CUDA; the CPU has its own for all.
#include "sim/convolution.h"

#include <ATen/TensorUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include "sim/fallback.h"

namespace devsan::sim {
namespace {

void check_operands(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  TORCH_CHECK(input.options().type_equal(weight.options()), "Input type (", input.toString(), ") and weight type (",
              weight.toString(), ") should be the same");
  TORCH_CHECK(!bias.defined() || input.options().type_equal(bias.options()), "Input type (", input.toString(),
              ") and bias type (", bias.toString(), ") should be the same");
  at::checkSameGPU("cudnn_convolution", at::TensorArg(input, "input", 1), at::TensorArg(weight, "weight", 2));
}

void convolution(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  const c10::IValue& bias = arguments[2];
  check_operands(arguments[0].toTensor(), arguments[1].toTensor(), bias.isTensor() ? bias.toTensor() : at::Tensor());
  run_on_host(op, keys, stack);
}

}  // namespace

void register_convolution() {
  static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  aten.impl("_convolution", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  aten.impl("convolution_backward", torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

}  // namespace devsan::sim
