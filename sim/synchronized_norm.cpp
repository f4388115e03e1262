// Half-precision numbers are computed in float32, and statistics are kept in it, as in CUDA's kernels.
#include "sim/synchronized_norm.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>
#include <vector>

#include "sim/host_kernels.h"

namespace devsan::sim {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

// Every dimension but that of the channels.
std::vector<std::int64_t> reduced_dims(const at::Tensor& input) {
  std::vector<std::int64_t> dims{0};
  for (std::int64_t dim = 2; dim < input.dim(); ++dim) dims.push_back(dim);
  return dims;
}

at::Tensor per_channel(const at::Tensor& values, const at::Tensor& input) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[1] = -1;
  return values.view(shape);
}

at::Tensor weight_of(const OptionalTensor& weight, const at::Tensor& like) {
  return is_there(weight) ? widened(*weight) : at::ones_like(like);
}

std::tuple<at::Tensor, at::Tensor> stats(const at::Tensor& input, double eps) {
  const at::Tensor values = widened(input);
  const std::vector<std::int64_t> dims = reduced_dims(values);
  const at::Tensor variance = values.var(dims, /*correction=*/0);
  return {values.mean(dims), (variance + eps).rsqrt()};
}

at::Tensor elemt(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                 const at::Tensor& mean, const at::Tensor& invstd, double) {
  const at::Tensor values = widened(input);
  at::Tensor result = (values - per_channel(mean, values)) * per_channel(invstd * weight_of(weight, invstd), values);
  if (is_there(bias)) result = result + per_channel(widened(*bias), values);
  return result.to(input.scalar_type());
}

void move_average(const OptionalTensor& average, const at::Tensor& value, double momentum) {
  if (!is_there(average)) return;
  average->mul_(1 - momentum).add_(value.to(average->scalar_type()), momentum);
}

std::tuple<at::Tensor, at::Tensor> gather_stats_with_counts(const at::Tensor&, const at::Tensor& means,
                                                            const at::Tensor& invstds,
                                                            const OptionalTensor& running_mean,
                                                            const OptionalTensor& running_var, double momentum,
                                                            double eps, const at::Tensor& counts) {
  const at::Tensor weights = counts.to(means.scalar_type()).view({-1, 1});
  const at::Tensor total = weights.sum();
  const at::Tensor mean = (means * weights).sum(0) / total;
  const at::Tensor variances = invstds.pow(-2) - eps;
  const at::Tensor deviation = means - mean;
  const at::Tensor squares = ((variances + deviation * deviation) * weights).sum(0);
  move_average(running_mean, mean, momentum);
  move_average(running_var, squares / (total - 1), momentum);
  return {mean, (squares / total + eps).rsqrt()};
}

std::tuple<at::Tensor, at::Tensor> gather_stats(const at::Tensor& input, const at::Tensor& means,
                                                const at::Tensor& invstds, const OptionalTensor& running_mean,
                                                const OptionalTensor& running_var, double momentum, double eps,
                                                std::int64_t count) {
  const at::Tensor counts = at::full({means.size(0)}, static_cast<double>(count), means.options());
  return gather_stats_with_counts(input, means, invstds, running_mean, running_var, momentum, eps, counts);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> backward_reduce(
    const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& mean, const at::Tensor& invstd,
    const OptionalTensor& weight, bool input_g, bool weight_g, bool bias_g) {
  const at::Tensor gradient = widened(grad_out), values = widened(input);
  const std::vector<std::int64_t> dims = reduced_dims(values);
  const at::Tensor sum = gradient.sum(dims);
  const at::Tensor weighted = (gradient * (values - per_channel(mean, values))).sum(dims);
  const at::ScalarType dtype = is_there(weight) ? weight->scalar_type() : mean.scalar_type();
  return {input_g ? sum : at::Tensor(), input_g ? weighted : at::Tensor(),
          weight_g ? (weighted * invstd).to(dtype) : at::Tensor(), bias_g ? sum.to(dtype, false, true) : at::Tensor()};
}

at::Tensor backward_elemt(const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& mean,
                          const at::Tensor& invstd, const OptionalTensor& weight, const at::Tensor& sum_dy,
                          const at::Tensor& sum_dy_xmu, const at::Tensor& count) {
  const at::Tensor gradient = widened(grad_out), values = widened(input);
  const at::Tensor total = count.sum().to(mean.scalar_type());
  const at::Tensor slope = per_channel(sum_dy_xmu / total * invstd * invstd, values);
  const at::Tensor centered = gradient - per_channel(sum_dy / total, values);
  const at::Tensor result = (centered - (values - per_channel(mean, values)) * slope) *
                            per_channel(invstd * weight_of(weight, invstd), values);
  return result.to(input.scalar_type());
}

}  // namespace

void register_synchronized_norm() {
  add_host_kernel("aten::batch_norm_stats", TORCH_FN(stats));
  add_host_kernel("aten::batch_norm_elemt", TORCH_FN(elemt));
  add_host_kernel("aten::batch_norm_gather_stats", TORCH_FN(gather_stats));
  add_host_kernel("aten::batch_norm_gather_stats_with_counts", TORCH_FN(gather_stats_with_counts));
  add_host_kernel("aten::batch_norm_backward_reduce", TORCH_FN(backward_reduce));
  add_host_kernel("aten::batch_norm_backward_elemt", TORCH_FN(backward_elemt));
}

}  // namespace devsan::sim
