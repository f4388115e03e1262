// The findings about traffic between the host and devices: what PyTorch lets pass.
#pragma once

#include <vector>

#include "report/model/finding.h"
#include "trace/reader.h"

namespace devsan::report {

// A warning is a race, an asynchronous copy from pageable memory, or a number that an operator takes from a device, if
// code of the program's own is at it. Everything else is a note, and a copy that happened once is not told of at all.
std::vector<Finding> build_traffic(const trace::TraceFile& trace);

}  // namespace devsan::report
