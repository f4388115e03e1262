// The rules that this process was given, for its trace: what they mean, the report knows. They are kept for children
// that are forked, and never freed.
#pragma once

#include <string>
#include <vector>

#include "trace/recorder.h"

namespace devsan {

// Reads the file that `devsan rules compile` has written, if there is one; `expect_not` is the option of that name.
// Returns what is wrong, one line each. To be called once.
std::vector<std::string> load_rules(const std::string& path, const std::string& expect_not) noexcept;

// Writes them into the trace of this process, so that its report needs nothing else.
void record_rules(trace::Recorder* recorder) noexcept;

}  // namespace devsan
