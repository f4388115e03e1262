// The rules by which CUDA's kernels compare their operands' devices, for operators that have rules of their own.
#pragma once

#include <string>

#include "sim/operands.h"

namespace devsan::sim {

using DeviceCheck = void (*)(const Call&);

// Of `device_rules.def`: in place of the check of CUDA's wrappers. Null for an operator without one.
DeviceCheck find_device_rule(const c10::OperatorHandle& op, const std::string& name);

// Of `kernel_rules.def`: what the kernel refuses after that. Null for an operator without one.
DeviceCheck find_kernel_rule(const std::string& name);

// Of `unchecked_operators.def`: in place of both for an `out` form that the program calls itself.
DeviceCheck find_meta_rule(const std::string& name);

}  // namespace devsan::sim
