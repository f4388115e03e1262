// Half-precision numbers are computed in float32, as CUDA's kernels compute them.
#include "sim/recurrent_cells.h"

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

at::Tensor plus(const at::Tensor& sum, const at::Tensor& summand) {
  return summand.defined() ? sum + summand : sum;
}

at::Tensor slope_of_sigmoid(const at::Tensor& value) {
  return value * (1 - value);
}

at::Tensor slope_of_tanh(const at::Tensor& value) {
  return 1 - value * value;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                         const at::Tensor& cx, const OptionalTensor& input_bias,
                                                         const OptionalTensor& hidden_bias) {
  const at::Tensor from_input = plus(widened(input_gates), widened(input_bias));
  const at::Tensor gates = from_input + plus(widened(hidden_gates), widened(hidden_bias));
  const std::vector<at::Tensor> parts = gates.chunk(4, 1);
  const at::Tensor in = parts[0].sigmoid(), forget = parts[1].sigmoid(), cell = parts[2].tanh(),
                   out = parts[3].sigmoid();
  const at::Tensor cy = forget * widened(cx) + in * cell;
  const at::Tensor workspace = at::cat({in, forget, cell, out}, 1);
  const at::ScalarType dtype = cx.scalar_type();
  return {(out * cy.tanh()).to(dtype), cy.to(dtype), workspace.to(dtype)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(const OptionalTensor& grad_hy,
                                                                  const OptionalTensor& grad_cy, const at::Tensor& cx,
                                                                  const at::Tensor& cy, const at::Tensor& workspace,
                                                                  bool has_bias) {
  if (!is_there(grad_hy) && !is_there(grad_cy)) return {};
  const std::vector<at::Tensor> gates = widened(workspace).chunk(4, 1);
  const at::Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  const at::Tensor old_state = widened(cx), squashed = widened(cy).tanh();
  const at::Tensor to_hidden = is_there(grad_hy) ? widened(grad_hy) : at::zeros_like(old_state);
  const at::Tensor to_state = plus(to_hidden * out * slope_of_tanh(squashed), widened(grad_cy));
  const at::Tensor grad_gates =
      at::cat({to_state * cell * slope_of_sigmoid(in), to_state * old_state * slope_of_sigmoid(forget),
               to_state * in * slope_of_tanh(cell), to_hidden * squashed * slope_of_sigmoid(out)},
              1);
  const at::Tensor grad_bias = has_bias ? grad_gates.sum(0) : at::Tensor();
  const at::ScalarType dtype = cx.scalar_type();
  return {grad_gates.to(dtype), (to_state * forget).to(dtype), has_bias ? grad_bias.to(dtype) : grad_bias};
}

std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                            const at::Tensor& hx, const OptionalTensor& input_bias,
                                            const OptionalTensor& hidden_bias) {
  const std::vector<at::Tensor> from_input = plus(widened(input_gates), widened(input_bias)).chunk(3, 1);
  const std::vector<at::Tensor> from_hidden = plus(widened(hidden_gates), widened(hidden_bias)).chunk(3, 1);
  const at::Tensor old_state = widened(hx);
  const at::Tensor reset = (from_input[0] + from_hidden[0]).sigmoid();
  const at::Tensor update = (from_input[1] + from_hidden[1]).sigmoid();
  const at::Tensor candidate = (from_input[2] + reset * from_hidden[2]).tanh();
  const at::Tensor hy = candidate + update * (old_state - candidate);
  const at::Tensor workspace = at::cat({reset, update, candidate, old_state, from_hidden[2]}, 1);
  return {hy.to(hx.scalar_type()), workspace.to(hx.scalar_type())};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gru_cell_backward(const at::Tensor& grad_hy,
                                                                                         const at::Tensor& workspace,
                                                                                         bool has_bias) {
  const std::vector<at::Tensor> kept = widened(workspace).chunk(5, 1);
  const at::Tensor &reset = kept[0], &update = kept[1], &candidate = kept[2], &old_state = kept[3],
                   &hidden_part = kept[4];
  const at::Tensor grad = widened(grad_hy);
  const at::Tensor to_candidate = grad * (1 - update) * slope_of_tanh(candidate);
  const at::Tensor to_update = grad * (old_state - candidate) * slope_of_sigmoid(update);
  const at::Tensor to_reset = to_candidate * hidden_part * slope_of_sigmoid(reset);
  const at::Tensor to_input = at::cat({to_reset, to_update, to_candidate}, 1);
  const at::Tensor to_hidden = at::cat({to_reset, to_update, to_candidate * reset}, 1);
  const at::ScalarType dtype = grad_hy.scalar_type();
  const at::Tensor input_bias = has_bias ? to_input.sum(0).to(dtype) : at::Tensor();
  const at::Tensor hidden_bias = has_bias ? to_hidden.sum(0).to(dtype) : at::Tensor();
  return {to_input.to(dtype), to_hidden.to(dtype), (grad * update).to(dtype), input_bias, hidden_bias};
}

}  // namespace

void register_recurrent_cells() {
  add_host_kernel("aten::_thnn_fused_lstm_cell", TORCH_FN(lstm_cell));
  add_host_kernel("aten::_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstm_cell_backward));
  add_host_kernel("aten::_thnn_fused_gru_cell", TORCH_FN(gru_cell));
  add_host_kernel("aten::_thnn_fused_gru_cell_backward", TORCH_FN(gru_cell_backward));
}

}  // namespace devsan::sim
