// What a trace tells of memory over time.
#pragma once

#include "report/model/finding.h"
#include "trace/reader.h"

namespace devsan::report {

void add_memory(const trace::TraceFile& trace, Process& process);

}  // namespace devsan::report
