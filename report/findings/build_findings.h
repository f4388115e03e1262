// From what one process recorded to what there is to say about it. Each finding has its id. What PyTorch refused has no
// cause yet: that takes the texts of all processes (causes.h).
#pragma once

#include <vector>

#include "report/model/finding.h"
#include "trace/reader.h"

namespace devsan::report {

std::vector<Finding> build_findings(const trace::TraceFile& trace);

}  // namespace devsan::report
