// When iterations were.
#pragma once

#include "report/model/run.h"
#include "trace/reader.h"

namespace devsan::report {

void add_step_times(const trace::TraceFile& trace, Process& process);

}  // namespace devsan::report
