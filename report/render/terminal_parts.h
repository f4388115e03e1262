// The parts of a finding in the terminal, each a list of lines without line ends.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/model/finding.h"
#include "report/text/lines.h"
#include "report/text/style.h"

namespace devsan::report {

// A table: operand, device, shape, dtype; an arrow at the odd ones. Long lists of operands are shortened.
Lines operand_lines(const Finding& finding, const Style& style);

// The history of the odd operand, and of those that a cause is about, newest first: steps on one line are one, long
// histories show their ends and the root cause.
Lines lineage_lines(const Finding& finding, const Style& style);

// Which ranks ran as far without it, and what sets them apart.
Lines apart_lines(const Finding& finding, const Style& style);

// The root cause with its line, and the change to make.
Lines cause_lines(const Finding& finding, std::size_t gutter, const Style& style);

// "rank 0", "step 17", "optimizer", "thread MainThread", "pid 4242", "once"
std::vector<std::string> circumstance_parts(const Finding& finding);

// "rank 0 · step 17 · optimizer · thread MainThread · pid 4242 · once", broken between these only where that is
// possible.
Lines circumstances(const Finding& finding, std::size_t indent, const Style& style);

// "[4, 8]"; empty without a shape
std::string shape_text(const Operand& operand);

}  // namespace devsan::report
