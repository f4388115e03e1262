// Findings about memory that grows from step to step: `memory-growth`.
#pragma once

#include <vector>

#include "report/model/finding.h"
#include "report/model/run.h"
#include "trace/reader.h"

namespace devsan::report {

// `process` is that of the trace. What is kept by one list or dict is one finding, with what the graphs of its tensors
// keep; curves that grow without tensors that account for it are findings without a place.
std::vector<Finding> build_growth(const trace::TraceFile& trace, const Process& process);

}  // namespace devsan::report
