// The order is hardware's: flash attention, memory-efficient attention, the composite formula. What hardware would give
// to a kernel that sim/attention.cpp does not cover, such as attention with dropout, goes to the composite formula.
#include "sim/attention_choice.h"

#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/transformers/attention.h>
#include <torch/library.h>

#include <optional>

namespace devsan::sim {
namespace {

using at::SDPBackend;

constexpr int kMaxHeadSize = 256;

struct Attention {
  const at::Tensor& query;
  const at::Tensor& key;
  const at::Tensor& value;
  const std::optional<at::Tensor>& mask;
  double dropout_p;
  bool is_causal;
  bool enable_gqa;

  bool has_mask() const { return mask && mask->defined(); }
  bool is_half_precision() const { return c10::isReducedFloatingType(query.scalar_type()); }
};

bool is_plain(const at::Tensor& operand) {
  return !operand.is_nested() && operand.dim() == 4 && operand.sym_size(2) != 0 && operand.sym_stride(-1) == 1;
}

// What both of the fused kernels ask for.
bool is_fusable(const Attention& call) {
  if (!is_plain(call.query) || !is_plain(call.key) || !is_plain(call.value) || call.dropout_p != 0) return false;
  const at::ScalarType dtype = call.query.scalar_type();
  if (dtype != call.key.scalar_type() || dtype != call.value.scalar_type()) return false;
  if (!call.is_half_precision() && dtype != at::kFloat) return false;
  const c10::SymInt batch = call.query.sym_size(0), head_size = call.query.sym_size(3);
  return batch != 0 && call.key.sym_size(0) == batch && call.value.sym_size(0) == batch &&
         call.key.sym_size(1) == call.value.sym_size(1) && call.key.sym_size(2) == call.value.sym_size(2) &&
         call.key.sym_size(3) == head_size && call.value.sym_size(3) == head_size;
}

bool has_equal_heads(const Attention& call) {
  return call.query.sym_size(1) == call.key.sym_size(1);
}

bool takes_flash(const Attention& call) {
  if (!at::globalContext().userEnabledFlashSDP() || !call.is_half_precision() || call.has_mask()) return false;
  const c10::SymInt heads = call.query.sym_size(1), key_heads = call.key.sym_size(1);
  const bool groups = call.enable_gqa && key_heads != 0 && heads % key_heads == 0;
  if (!has_equal_heads(call) && !groups) return false;
  if (call.is_causal && call.query.sym_size(2) != call.key.sym_size(2)) return false;
  return call.query.sym_size(3) <= kMaxHeadSize;
}

bool takes_efficient(const Attention& call) {
  if (!at::globalContext().userEnabledMemEfficientSDP() || !has_equal_heads(call)) return false;
  return !call.has_mask() || (call.mask->sym_stride(-1) == 1 && !call.mask->requires_grad());
}

// Flash attention alone was asked for, and no flash attention takes these numbers.
void check_any_kernel(const Attention& call) {
  const at::Context& context = at::globalContext();
  TORCH_CHECK(context.userEnabledMathSDP() || context.userEnabledMemEfficientSDP() || context.userEnabledCuDNNSDP() ||
                  call.is_half_precision(),
              "No available kernel. Aborting execution.");
}

std::int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const std::optional<at::Tensor>& mask, double dropout_p, bool is_causal, std::optional<double>,
                    bool enable_gqa) {
  const Attention call{query, key, value, mask, dropout_p, is_causal, enable_gqa};
  check_any_kernel(call);
  SDPBackend chosen = SDPBackend::math;
  if (is_fusable(call)) {
    if (takes_flash(call)) {
      chosen = SDPBackend::flash_attention;
    } else if (takes_efficient(call)) {
      chosen = SDPBackend::efficient_attention;
    }
  }
  return static_cast<std::int64_t>(chosen);
}

}  // namespace

void register_attention_choice() {
  static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  aten.impl("_fused_sdp_choice", TORCH_FN(choose));
  at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(&choose);  // asked past all operators
}

}  // namespace devsan::sim
