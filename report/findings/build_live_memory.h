// What was live when a device had no memory left.
#pragma once

#include <span>
#include <vector>

#include "report/model/finding.h"
#include "trace/reader.h"

namespace devsan::report {

// The rows of one line, operator and kind together; the largest first, and no more than a report shows.
std::vector<LiveMemory::Row> rows_by_place(const trace::TraceFile& trace, std::span<const trace::LiveMemoryRow> rows);

// Fills in what the trace and PyTorch's message tell of it. `finding` is that of the meeting.
void add_live_memory(const trace::TraceFile& trace, const trace::Meeting& meeting, Finding& finding);

}  // namespace devsan::report
