// A program of one file, and a failure in it: `x` on cuda:0 meets another operand, on the CPU, in the line marked
// "fails". A mark is the comment at the end of a line.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/facts.h"
#include "report/model/finding.h"
#include "report/slice/code.h"
#include "report/slice/slice.h"

namespace devsan::report {

class SampleProgram {
 public:
  explicit SampleProgram(std::string text);

  int line(std::string_view mark) const;
  // `call`: the part of the line that calls; all of it without.
  Frame at(std::string_view mark, const char* function, std::string_view call = "") const;
  // The failure of `call` in the function. `callers` were running as well, innermost first.
  Finding failing(const char* function, std::string_view call, const char* odd, std::vector<Frame> callers = {},
                  trace::NameKind is = trace::NameKind::local) const;

  const Sources& sources() const { return sources_; }
  std::vector<slice::Place> slice(const Finding& finding);
  // Of the places of the odd operand that begin in the line.
  std::set<std::string> roles(const Finding& finding, std::string_view mark);
  slice::Codebase& codebase() { return codebase_; }

 private:
  Sources sources_;
  slice::Codebase codebase_;
  std::vector<std::string> lines_;
};

}  // namespace devsan::report
