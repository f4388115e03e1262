// Operators of an extension that follow a device pointer on the host, as test_sim_guard.py loads them.
#include <ATen/ATen.h>
#include <torch/library.h>

namespace {

double first(const at::Tensor& values) {
  return values.data_ptr<float>()[0];
}

// The same bytes as a tensor of the CPU, which they are not.
at::Tensor doubled(const at::Tensor& values) {
  return at::from_blob(values.data_ptr(), values.sizes(), at::kFloat) * 2;
}

TORCH_LIBRARY(devsan_reader, library) {
  library.def("first(Tensor values) -> float", first);
  library.def("doubled(Tensor values) -> Tensor", doubled);
}

}  // namespace
