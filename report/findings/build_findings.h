// From what one process recorded to what there is to say about it. Each finding has its id. What PyTorch refused has no
// cause yet: that takes the texts of all processes (causes.h).
#pragma once

#include <string>
#include <vector>

#include "report/model/finding.h"
#include "trace/reader.h"

namespace devsan::report {

std::vector<Finding> build_findings(const trace::TraceFile& trace);

// The GPU with the number of the local rank, which is that of the process by convention; empty in a job of one process.
std::string device_of_rank(const trace::TraceFile& trace);

}  // namespace devsan::report
