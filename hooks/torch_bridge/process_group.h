// A collective on tensors of a device that the process group has no backend for, as NCCL has none for the host: torch
// names that device, and no operand is on the one that is wanted.
#pragma once

#include <string_view>

#include "hooks/torch_bridge/operand_list.h"

namespace devsan::hooks {

// Adds the device that the group works on, where `message` is that complaint: the host, or the current GPU. Does
// nothing for any other.
void add_device_of_group(std::string_view message, OperandList& operands) noexcept;

}  // namespace devsan::hooks
