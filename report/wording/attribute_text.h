// A finding about an overwritten attribute, in words.
#pragma once

#include <string>
#include <vector>

#include "report/model/finding.h"
#include "report/text/style.h"

namespace devsan::report {

// "`Expert.id` was 1, and deepspeed/runtime/zero/parameter_offload.py wrote 3 over it"
std::string overwriting_headline(const Finding& finding);

// Both writers.
std::vector<std::string> writer_lines(const Finding& finding, const Style& style);

// Fills in the cause, and what to change.
void tell_overwriting(Finding& finding);

// Of a misplaced tensor: what was overwritten may be what put it there.
void tell_link(Finding& finding);

}  // namespace devsan::report
