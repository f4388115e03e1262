// The report as a person reads it.
#pragma once

#include <string>

#include "report/model/finding.h"
#include "report/model/run.h"
#include "report/text/style.h"

namespace devsan::report {

struct Shown {
  bool notes = false;       // besides errors and warnings
  bool suppressed = false;  // what a suppression or the program itself has silenced; its notes, too, only with `notes`
  bool memory = false;      // of all processes over time, not of those alone that a shown finding says it of
};

// The findings that are to be shown; then what else there is to say about the run.
std::string render_terminal(const Report& report, const Style& style, const Shown& shown);

std::string render_finding(const Finding& finding, const Style& style);

}  // namespace devsan::report
