#include "hooks/torch_bridge/process_group.h"

#include "trace/odd_operand.h"

namespace devsan::hooks {

void add_device_of_group(std::string_view message, OperandList& operands) noexcept {
  const std::size_t at = message.find(trace::kGroupRefused);
  if (at == message.npos) return;
  const bool host = message.substr(at + trace::kGroupRefused.size()).starts_with("cpu");
  operands.device("group", c10::Device(host ? c10::kCUDA : c10::kCPU));
}

}  // namespace devsan::hooks
