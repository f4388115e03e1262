// Findings as real programs make them, filled in by hand.
#pragma once

#include "report/model/finding.h"
#include "report/model/run.h"

namespace devsan::report::samples {

// A training framework leaves a gradient norm on the device; the optimizer's CPU gradients meet it many steps later.
Finding offloaded_gradient();
// A constant kept as a plain attribute stayed on the CPU.
Finding plain_attribute();
// What PyTorch allowed: a CPU scalar among device tensors.
Finding allowed_scalar();
// The process around a finding.
Report report_of(std::vector<Finding> findings);

}  // namespace devsan::report::samples
