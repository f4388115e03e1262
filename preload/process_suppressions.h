// The suppressions that this process was given. What they hold is read once, and never freed: threads may ask at any
// time, also after the end of main.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/recorder.h"
#include "trace/suppressions.h"

namespace devsan {

// Reads the file; returns what is wrong with it, one line each. To be called once, before anyone can ask.
std::vector<std::string> load_suppressions(const std::string& path) noexcept;

// Writes the entries into the trace of this process, so that its report needs nothing else.
void record_suppressions(trace::Recorder* recorder) noexcept;

bool is_suppressed(const trace::FindingPlace& place) noexcept;

}  // namespace devsan
