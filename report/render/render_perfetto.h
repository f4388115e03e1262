// The run as a trace of the Chrome format, which ui.perfetto.dev, chrome://tracing and Speedscope open.
#pragma once

#include <string>

#include "report/model/run.h"

namespace devsan::report {

// A track for each process and thread, findings as marks, steps as slices, memory as counters. Of operators the trace
// knows the order and the step, but no times: they stand at the end of their step, each as wide as any other.
std::string render_perfetto(const Report& report);

}  // namespace devsan::report
