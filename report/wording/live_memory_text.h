// A finding about a device without memory in words.
#pragma once

#include <string>
#include <vector>

#include "report/model/finding.h"
#include "report/model/run.h"
#include "report/text/style.h"

namespace devsan::report {

// "cuda:0 has no memory for another 2.0 GiB"
std::string live_memory_headline(const Finding& finding);

// "Of 512.0 MiB: 380.1 MiB in tensors, 90.2 MiB free."; empty where nothing of that is known.
std::string room_text(const LiveMemory& live);

// What was in tensors of a device, or of the host, when most was: by kind and line.
std::vector<std::string> peak_memory_lines(const PeakMemory& peak, const Style& style);

// What was live, by kind, module and line.
std::vector<std::string> live_memory_lines(const Finding& finding, const Style& style);

}  // namespace devsan::report
