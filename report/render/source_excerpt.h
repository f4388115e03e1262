// A line of source with its number, broken where it is too long, and with marks under the parts that matter:
//
//    23 │ return (s + self.bias).softmax(-1)
//       │         -   ^^^^^^^^^ cpu
//       │         cuda:0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/finding.h"
#include "report/text/style.h"

namespace devsan::report {

struct Mark {
  std::size_t begin = 0;  // bytes of the source line
  std::size_t end = 0;
  char sign = '^';
  Paint paint = Paint::error;
  std::string label;
};

// Marks the operands whose names stand in the call, odd ones with '^'; with none of them there, the call itself, unless
// it is the whole line.
std::vector<Mark> marks_for(const Frame& frame, const std::vector<Operand>& operands);

// Lines without line ends; none where the source is not known. `gutter` is the room for line numbers.
std::vector<std::string> excerpt(const Frame& frame, std::vector<Mark> marks, std::size_t gutter, const Style& style);

// The room that these line numbers need.
std::size_t gutter_for(int largest_line);

// One line of source without indentation and comments, tabs as blanks.
std::string bare_source(std::string_view source);

}  // namespace devsan::report
