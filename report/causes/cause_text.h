// What a report says of a line that may be the one to change.
#pragma once

#include <string>

#include "report/causes/mechanism.h"
#include "report/model/finding.h"
#include "report/ranking/candidate.h"
#include "report/slice/code.h"
#include "report/slice/slice.h"

namespace devsan::report {

// A line, and what it is suspected of.
struct Suspect {
  const ranking::Candidate& candidate;
  const slice::Place& place;
  const Operand* operand;  // that the line decides about; null where no operand is odd
  const Operand* other;    // that it should have met on one device; null where it met none
};

// That of the role, but for weights: those are not moved one by one.
Mechanism mechanism_of(const Suspect& suspect);
// "This line makes `x`, or what it comes from, without naming a device."
std::string what_line_does(const Suspect& suspect);
// "`x` was on cpu; `weight` was on cuda:0."
std::string what_disagreed(const Suspect& suspect);
// "Pass `device=weight.device` in this line, or move what it makes to the device of `weight`: `.to(weight.device)`."
std::string what_to_change(const Suspect& suspect, const Finding& finding, const slice::Code& code);

}  // namespace devsan::report
