// All by way of the CPU's flash attention, which gives the same log-sum-exp. It has no dropout.
#include "sim/attention.h"

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>

#include "sim/host_kernels.h"
#include "trace/not_simulated.h"

namespace devsan::sim {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

void check_no_dropout(double dropout_p) {
  TORCH_CHECK_NOT_IMPLEMENTED(dropout_p == 0, trace::kNotSimulated, "fused attention with dropout");
}

// What the CPU's kernel takes on trust.
void check_operands(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  TORCH_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4, "query, key and value must have 4 dimensions");
  TORCH_CHECK(query.scalar_type() == key.scalar_type() && query.scalar_type() == value.scalar_type(),
              "query, key and value must have the same dtype");
  TORCH_CHECK(query.size(0) == key.size(0) && query.size(0) == value.size(0),
              "query, key and value must have the same batch size");
  TORCH_CHECK(key.size(1) == value.size(1) && key.size(2) == value.size(2), "key and value must have the same shape");
}

// Where the lengths differ, flash attention's mask is aligned with the last query and key, the CPU's with the first.
void check_flash_operands(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool is_causal) {
  check_operands(query, key, value);
  TORCH_CHECK(c10::isReducedFloatingType(query.scalar_type()), "FlashAttention only support fp16 and bf16 data type");
  TORCH_CHECK(key.size(1) > 0 && query.size(1) % key.size(1) == 0,
              "Number of heads in key/value must divide number of heads in query");
  TORCH_CHECK_NOT_IMPLEMENTED(!is_causal || query.size(2) == key.size(2), trace::kNotSimulated,
                              "causal flash attention of ", query.size(2), " queries over ", key.size(2), " keys");
}

void check_efficient_operands(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  check_operands(query, key, value);
  TORCH_CHECK(query.scalar_type() != at::kDouble, "Only fp32, half & bf16 supported at the moment");
  TORCH_CHECK(query.size(1) == key.size(1), "query and key must have the same number of heads");
}

at::Tensor no_random_state(const at::Tensor& query) {
  return at::zeros({}, query.options().dtype(at::kLong));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor, at::Tensor, at::Tensor>
flash_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double dropout_p,
                bool is_causal, bool return_debug_mask, std::optional<double> scale) {
  check_no_dropout(dropout_p);
  check_flash_operands(query, key, value, is_causal);
  TORCH_CHECK(!return_debug_mask, "Only support debug mask when dropout_p > 0.");
  auto [output, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, is_causal,
                                                                             /*attn_mask=*/std::nullopt, scale);
  return {output,
          logsumexp,
          at::Tensor(),
          at::Tensor(),
          query.size(2),
          key.size(2),
          no_random_state(query),
          no_random_state(query),
          at::empty({0}, query.options())};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> flash_attention_backward(
    const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor&, const at::Tensor&, c10::SymInt, c10::SymInt,
    double dropout_p, bool is_causal, const at::Tensor&, const at::Tensor&, std::optional<double> scale) {
  check_no_dropout(dropout_p);
  return at::_scaled_dot_product_flash_attention_for_cpu_backward(grad_out, query, key, value, out, logsumexp, 0.0,
                                                                  is_causal, /*attn_mask=*/std::nullopt, scale);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> efficient_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const OptionalTensor& attn_bias,
    bool compute_log_sumexp, double dropout_p, bool is_causal, std::optional<double> scale) {
  check_no_dropout(dropout_p);
  check_efficient_operands(query, key, value);
  TORCH_CHECK(!is_there(attn_bias) || attn_bias->stride(-1) == 1, "(*bias): last dimension must be contiguous");
  auto [output, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, is_causal,
                                                                             /*attn_mask=*/attn_bias, scale);
  const at::Tensor kept =
      compute_log_sumexp ? logsumexp : at::empty({query.size(0), query.size(1), 0}, logsumexp.options());
  return {output, kept, no_random_state(query), no_random_state(query)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> efficient_attention_backward(
    const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& attn_bias, const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor&,
    const at::Tensor&, double dropout_p, std::array<bool, 4> wanted, bool is_causal, std::optional<double> scale) {
  check_no_dropout(dropout_p);
  TORCH_CHECK_NOT_IMPLEMENTED(!wanted[3] || !attn_bias.defined(), trace::kNotSimulated,
                              "the gradient of fused attention's bias");
  const OptionalTensor bias = attn_bias.defined() ? OptionalTensor(attn_bias) : std::nullopt;
  auto [grad_query, grad_key, grad_value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      grad_out, query, key, value, out, logsumexp, 0.0, is_causal, /*attn_mask=*/bias, scale);
  return {grad_query, grad_key, grad_value, at::Tensor()};
}

}  // namespace

void register_attention() {
  add_host_kernel("aten::_scaled_dot_product_flash_attention", TORCH_FN(flash_attention));
  add_host_kernel("aten::_scaled_dot_product_flash_attention_backward", TORCH_FN(flash_attention_backward));
  add_host_kernel("aten::_scaled_dot_product_efficient_attention", TORCH_FN(efficient_attention));
  add_host_kernel("aten::_scaled_dot_product_efficient_attention_backward", TORCH_FN(efficient_attention_backward));
}

}  // namespace devsan::sim
