// A finding about a tensor that is not where it is expected, in words.
#pragma once

#include <string>
#include <vector>

#include "report/model/finding.h"
#include "report/text/style.h"

namespace devsan::report {

// "`layers.3.weight` is on cpu, where cuda:1 is expected"
std::string placement_headline(const Finding& finding);

// Which rule expects what, and what else breaks it.
std::vector<std::string> expectation_lines(const Finding& finding, const Style& style);

// "2.0 MiB are copied"
std::string copied_text(const Finding& finding);

// Fills in the line that put the tensor there as the cause, and what to change.
void tell_cause(Finding& finding);

}  // namespace devsan::report
