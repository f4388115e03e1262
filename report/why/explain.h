// Root cause and proposed change of a finding.
#pragma once

#include "report/finding.h"

namespace devsan::report {

// Sets `root_cause` and `fix` by the first rule that applies; leaves both empty where none does.
void explain(Finding& finding);

}  // namespace devsan::report
