#include "sim/wide_products.h"

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>

#include "sim/host_kernels.h"

namespace devsan::sim {
namespace {

at::Tensor widened(const at::Tensor& factor, at::ScalarType out_dtype) {
  TORCH_CHECK(out_dtype == factor.scalar_type() ||
                  (out_dtype == at::kFloat && c10::isReducedFloatingType(factor.scalar_type())),
              "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs");
  return factor.to(out_dtype);
}

void check_out(const at::Tensor& out, at::ScalarType out_dtype) {
  TORCH_CHECK(out.scalar_type() == out_dtype, "out_dtype must be the same as the dtype of the provided out tensor");
}

at::Tensor mm(const at::Tensor& self, const at::Tensor& mat2, at::ScalarType out_dtype) {
  return at::mm(widened(self, out_dtype), widened(mat2, out_dtype));
}

at::Tensor& mm_out(const at::Tensor& self, const at::Tensor& mat2, at::ScalarType out_dtype, at::Tensor& out) {
  check_out(out, out_dtype);
  return at::mm_out(out, widened(self, out_dtype), widened(mat2, out_dtype));
}

at::Tensor bmm(const at::Tensor& self, const at::Tensor& mat2, at::ScalarType out_dtype) {
  return at::bmm(widened(self, out_dtype), widened(mat2, out_dtype));
}

at::Tensor& bmm_out(const at::Tensor& self, const at::Tensor& mat2, at::ScalarType out_dtype, at::Tensor& out) {
  check_out(out, out_dtype);
  return at::bmm_out(out, widened(self, out_dtype), widened(mat2, out_dtype));
}

at::Tensor addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2, at::ScalarType out_dtype,
                 const at::Scalar& beta, const at::Scalar& alpha) {
  return at::addmm(self.to(out_dtype), widened(mat1, out_dtype), widened(mat2, out_dtype), beta, alpha);
}

at::Tensor& addmm_out(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2, at::ScalarType out_dtype,
                      const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  check_out(out, out_dtype);
  return at::addmm_out(out, self.to(out_dtype), widened(mat1, out_dtype), widened(mat2, out_dtype), beta, alpha);
}

at::Tensor baddbmm(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2, at::ScalarType out_dtype,
                   const at::Scalar& beta, const at::Scalar& alpha) {
  return at::baddbmm(self.to(out_dtype), widened(batch1, out_dtype), widened(batch2, out_dtype), beta, alpha);
}

at::Tensor& baddbmm_out(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
                        at::ScalarType out_dtype, const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  check_out(out, out_dtype);
  return at::baddbmm_out(out, self.to(out_dtype), widened(batch1, out_dtype), widened(batch2, out_dtype), beta, alpha);
}

}  // namespace

void register_wide_products() {
  add_host_kernel("aten::mm.dtype", TORCH_FN(mm));
  add_host_kernel("aten::mm.dtype_out", TORCH_FN(mm_out));
  add_host_kernel("aten::bmm.dtype", TORCH_FN(bmm));
  add_host_kernel("aten::bmm.dtype_out", TORCH_FN(bmm_out));
  add_host_kernel("aten::addmm.dtype", TORCH_FN(addmm));
  add_host_kernel("aten::addmm.dtype_out", TORCH_FN(addmm_out));
  add_host_kernel("aten::baddbmm.dtype", TORCH_FN(baddbmm));
  add_host_kernel("aten::baddbmm.dtype_out", TORCH_FN(baddbmm_out));
}

}  // namespace devsan::sim
