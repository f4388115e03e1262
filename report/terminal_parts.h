// The parts of a finding in the terminal, each a list of lines without line ends.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/finding.h"
#include "report/style.h"

namespace devsan::report {

using Lines = std::vector<std::string>;

// A table: operand, device, shape, dtype; an arrow at the odd ones. Long lists of operands are shortened.
Lines operand_lines(const Finding& finding, const Style& style);

// The history of the odd operand, and of those that a cause is about, newest first: steps on one line are one, long
// histories show their ends and the root cause.
Lines lineage_lines(const Finding& finding, const Style& style);

// The root cause with its line, and the change to make.
Lines cause_lines(const Finding& finding, std::size_t gutter, const Style& style);

// "rank 0 · step 17 · optimizer · thread MainThread · pid 4242 · once", broken between these only where that is
// possible.
Lines circumstances(const Finding& finding, std::size_t indent, const Style& style);

// "0-3, 6"
std::string ranges_of(const std::vector<int>& ascending);
// "1 error", "3 errors"
std::string counted(std::uint64_t count, std::string_view noun);
// "3.2 KiB"
std::string bytes_text(std::uint64_t bytes);
// "[4, 8]"; empty without a shape
std::string shape_text(const Operand& operand);

// Below `indent`, wrapped to the style's width.
void append_wrapped(Lines& lines, std::string_view text, std::size_t indent, const Style& style,
                    Paint paint = Paint::plain);
// The same as an item of a list: what does not fit the first line stands two columns further in.
void append_item(Lines& lines, std::string_view text, const Style& style, Paint paint = Paint::plain);

}  // namespace devsan::report
