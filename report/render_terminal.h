// The report as a person reads it.
#pragma once

#include <string>

#include "report/finding.h"
#include "report/style.h"

namespace devsan::report {

// All findings that are not notes, and notes too if `notes` is set; then what else there is to say about the run.
std::string render_terminal(const Report& report, const Style& style, bool notes);

std::string render_finding(const Finding& finding, const Style& style);

}  // namespace devsan::report
