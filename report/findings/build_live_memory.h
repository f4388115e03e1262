// What was live when a device had no memory left.
#pragma once

#include "report/model/finding.h"
#include "trace/reader.h"

namespace devsan::report {

// Fills in what the trace and PyTorch's message tell of it. `finding` is that of the meeting.
void add_live_memory(const trace::TraceFile& trace, const trace::Meeting& meeting, Finding& finding);

}  // namespace devsan::report
