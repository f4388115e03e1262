// Where operands stand in the source of the call that failed, and what those without a name are called by it: `1. /
// scale` in `grad.mul_(1. / scale)`.
#pragma once

#include "report/model/finding.h"

namespace devsan::report {

// Fills `text`, `name` where it is empty, and `spoken`. Needs the columns that Python keeps since 3.11.
void find_in_call(Finding& finding);

}  // namespace devsan::report
