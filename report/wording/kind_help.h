// What a kind of finding means and what to do about it, for who has not read the manual.
#pragma once

#include <string>

#include "report/model/finding.h"

namespace devsan::report {

// One or two sentences; that of its meaning alone for a kind that has none here.
std::string help_of(Kind kind);

}  // namespace devsan::report
