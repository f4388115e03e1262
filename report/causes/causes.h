// Why a device was wrong, and where else the change could stand.
#pragma once

#include <cstddef>

#include "report/model/finding.h"
#include "report/slice/code.h"

namespace devsan::report {

constexpr std::size_t kMostAlternatives = 3;

// Ranks the lines that the slices of the operands lead to. The first of them becomes `root_cause`, with a change to
// make; the next ones become `alternatives`. Only for what PyTorch refused because of devices, and where the texts of
// the files are at hand; else nothing changes.
void add_causes(Finding& finding, slice::Codebase& codebase);

}  // namespace devsan::report
