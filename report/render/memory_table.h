// Memory over time as a small table with a curve for each device and for the host.
#pragma once

#include <string>
#include <vector>

#include "report/model/finding.h"
#include "report/model/run.h"
#include "report/text/style.h"

namespace devsan::report {

// A heading, and a line for each curve.
std::vector<std::string> memory_lines(const std::vector<MemoryCurve>& curves, const Style& style);

// Those of each process, with its name above.
std::vector<std::string> memory_table(const std::vector<const Process*>& processes, const Style& style);

// `columns` characters, each as high as the most that was in use in its share of the time; the highest is the peak.
std::string sparkline(const std::vector<MemoryPoint>& points, std::size_t columns);

}  // namespace devsan::report
