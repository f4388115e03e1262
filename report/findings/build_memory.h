// What a trace tells of memory over time.
#pragma once

#include <string>

#include "report/model/run.h"
#include "trace/reader.h"

namespace devsan::report {

// "" is the host, as of a MemoryCurve.
std::string name_of_memory(const trace::TraceFile& trace, trace::DeviceSlot slot);

void add_memory(const trace::TraceFile& trace, Process& process);

}  // namespace devsan::report
