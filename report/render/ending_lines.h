// The end of a process in the terminal: what it did last, and its memory.
#pragma once

#include <string>
#include <vector>

#include "report/model/finding.h"
#include "report/text/style.h"

namespace devsan::report {

// Empty for a finding of another kind.
std::vector<std::string> ending_lines(const Finding& finding, const Style& style);

}  // namespace devsan::report
