// Installed code, seen from the program that calls it: `model.to(device)` of a library's model moves in a line of that
// library, and the line that a person changes is the program's.
#pragma once

#include "report/model/finding.h"

namespace devsan::report {

// Steps of histories in installed code stand at the call of the program's that led to them from now on, if it has
// returned. What fails in a call that a library still works at is the library's own business.
void tell_from_program(Finding& finding);

}  // namespace devsan::report
