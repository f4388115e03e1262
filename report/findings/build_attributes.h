// Findings about attributes of modules that a library has overwritten: `attribute-overwritten`.
#pragma once

#include <vector>

#include "report/model/finding.h"
#include "trace/reader.h"

namespace devsan::report {

std::vector<Finding> build_attributes(const trace::TraceFile& trace);

// Where a module that a misplaced tensor is in has such an attribute, the placement may follow from it: the finding
// tells the writers, too.
void link_attributes(const trace::TraceFile& trace, std::vector<Finding>& findings);

}  // namespace devsan::report
