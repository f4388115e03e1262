// What a trace says about its process, apart from findings.
#pragma once

#include "report/model/run.h"
#include "trace/reader.h"

namespace devsan::report {

// A thread's ring holds more than a report needs: these many of its last operators are told.
inline constexpr std::size_t kLastOperators = 64;

Process process_of(const trace::TraceFile& trace);
// The exception that nothing in the process caught.
std::optional<UncaughtException> uncaught_of(const trace::TraceFile& trace);

// Fills everything that follows from `run.processes`: command, hosts, times, versions, steps.
void summarize_processes(Run& run);

}  // namespace devsan::report
