// What sets the ranks that had a finding apart from those that ran as far and had it not.
#pragma once

#include <vector>

#include "report/model/finding.h"

namespace devsan::report {

// Fills in `other_ranks` and `differs` of the report's findings. For the latter a few traces of other ranks are read
// once more: what they made at the lines that the finding's history names.
void set_apart(Report& report);

}  // namespace devsan::report
