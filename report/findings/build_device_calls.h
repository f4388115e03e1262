// What a trace tells of calls of the device's driver and runtime.
#pragma once

#include "report/model/run.h"
#include "trace/reader.h"

namespace devsan::report {

void add_device_calls(const trace::TraceFile& trace, Process& process);

}  // namespace devsan::report
