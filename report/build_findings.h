// From what one process recorded to what there is to say about it. Findings come out complete: merged or not, each one
// has its id, its cause as far as the rules in report/why tell it, and a change to propose.
#pragma once

#include <vector>

#include "report/finding.h"
#include "trace/reader.h"

namespace devsan::report {

std::vector<Finding> build_findings(const trace::TraceFile& trace);

}  // namespace devsan::report
