// Lines besides the cause where the change could as well stand.
#pragma once

#include "report/finding.h"
#include "report/slice/code.h"

namespace devsan::report {

constexpr std::size_t kMostAlternatives = 3;

// Ranks the lines that the slices of the operands lead to, and sets `alternatives` to the first of them besides
// `root_cause`. Where there is no root cause, the first one becomes it. Only for what PyTorch refused because of
// devices, and where the texts of the files are at hand; else nothing changes.
void add_alternatives(Finding& finding, slice::Codebase& codebase);

}  // namespace devsan::report
