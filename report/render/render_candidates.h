// The lines that a failure's slices lead to, with the features of each, as JSON: what the ranking is fitted to.
#pragma once

#include <string>

#include "report/model/facts.h"
#include "report/model/run.h"

namespace devsan::report {

// Of each raised disagreement of devices. Features that are 0 are left out.
std::string render_candidates(const Report& report, const Sources& sources);

}  // namespace devsan::report
