#include "sim/host_kernels.h"

#include <string>
#include <unordered_map>
#include <utility>

namespace devsan::sim {
namespace {

std::unordered_map<std::string, c10::KernelFunction>& kernels() {
  static auto* all = new std::unordered_map<std::string, c10::KernelFunction>();
  return *all;
}

}  // namespace

void add_host_kernel(const char* name, c10::KernelFunction kernel) {
  kernels().insert_or_assign(name, std::move(kernel));
}

at::Tensor widened(const at::Tensor& operand) {
  return c10::isReducedFloatingType(operand.scalar_type()) ? operand.to(at::kFloat) : operand;
}

at::Tensor widened(const std::optional<at::Tensor>& operand) {
  return is_there(operand) ? widened(*operand) : at::Tensor();
}

const c10::KernelFunction* find_host_kernel(const c10::OperatorHandle& op) {
  const auto found = kernels().find(c10::toString(op.operator_name()));
  return found == kernels().end() ? nullptr : &found->second;
}

}  // namespace devsan::sim
