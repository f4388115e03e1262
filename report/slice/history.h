// The history of an operand's device.
#pragma once

#include "report/model/finding.h"

namespace devsan::report::slice {

// The newest step that made or moved the operand: it decided the device. Null where none is known.
const LineageStep* deciding_step(const Operand& operand);

}  // namespace devsan::report::slice
