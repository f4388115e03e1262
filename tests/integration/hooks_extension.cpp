// Operators of a C++ extension, as test_hooks_custom_ops.py loads them.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace {

at::Tensor scale(const at::Tensor& values, const at::Tensor& factors) {
  return at::mul(values, factors);
}

at::Tensor with_constant(const at::Tensor& values) {
  return at::add(values, at::ones({3}));
}

at::Tensor checked(const at::Tensor& values, const at::Tensor& factors) {
  TORCH_CHECK(values.device() == factors.device(), "Expected all tensors to be on the same device, but got ",
              values.device(), " and ", factors.device());
  return at::mul(values, factors);
}

at::Tensor pick(const at::Tensor& values, at::TensorList parts, const std::optional<at::Tensor>& order) {
  return values.clone();
}

// A legitimate operand on the CPU beside one on the GPU, and a constant on the wrong device that was never given.
at::Tensor lengths_and_constant(const at::Tensor& values, const at::Tensor& lengths) {
  lengths.sum();
  return at::add(values, at::ones({3}));
}

at::Tensor through_handle(const at::Tensor& values, const at::Tensor& factors) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("devsan_extension::checked", "")
                             .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
  return op.call(values, factors);
}

at::Tensor to_host(const at::Tensor& values) {
  return values.to(at::kCPU);
}

at::Tensor double_in_place(at::Tensor values) {
  return values.mul_(2);
}

TORCH_LIBRARY(devsan_extension, library) {
  library.def("scale(Tensor values, Tensor factors) -> Tensor", scale);
  library.def("with_constant(Tensor values) -> Tensor", with_constant);
  library.def("checked(Tensor values, Tensor factors) -> Tensor", checked);
  library.def("pick(Tensor values, Tensor[] parts, Tensor? order=None) -> Tensor", pick);
  library.def("lengths_and_constant(Tensor values, Tensor lengths) -> Tensor", lengths_and_constant);
  library.def("through_handle(Tensor values, Tensor factors) -> Tensor", through_handle);
  library.def("to_host(Tensor values) -> Tensor", to_host);
  library.def("double_in_place(Tensor(a!) values) -> Tensor(a!)", double_in_place);
}

}  // namespace
