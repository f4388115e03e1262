// A run in a few lines: what `devsan run` says at the end, and what closes a report in the terminal.
#pragma once

#include <string>
#include <vector>

#include "report/model/finding.h"
#include "report/model/run.h"
#include "report/text/style.h"

namespace devsan::report {

// Errors or warnings, damage, notices, unused suppressions, or processes that lost records. Notes alone are nothing to
// tell.
bool has_something_to_tell(const Report& report);

// Each error and warning in two lines, then the closing lines and how to see all of it. For a run with nothing to tell
// it is one line that says so.
std::string summary(const Report& report, const Style& style);

// A finding in a few lines: what, where, which operand, where to change it.
std::vector<std::string> finding_in_short(const Finding& finding, const Style& style);

// One line on the verdict; then notices, processes that ended oddly, unused suppressions, damage.
std::vector<std::string> closing_lines(const Report& report, const Style& style);

}  // namespace devsan::report
