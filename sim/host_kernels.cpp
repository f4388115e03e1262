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

const c10::KernelFunction* find_host_kernel(const c10::OperatorHandle& op) {
  const auto found = kernels().find(c10::toString(op.operator_name()));
  return found == kernels().end() ? nullptr : &found->second;
}

}  // namespace devsan::sim
