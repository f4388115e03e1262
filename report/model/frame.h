// A place in the program's code.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace devsan::report {

// A position in Python code. Everything but `file` may be missing: 0 lines, -1 columns, empty text.
struct Frame {
  std::string file;
  int line = 0;
  std::string function;
  std::string source;  // the line's text as it was when the process ran, with its indentation
  // Where the statement goes on in more lines: all of it as one line, without comments. Its first line keeps its
  // columns.
  std::string joined;
  struct LaterLine {
    std::size_t begin;   // in `joined`
    std::size_t indent;  // how many columns of the line itself were left out
  };
  std::vector<LaterLine> later_lines;
  int end_line = 0;  // of the call; `end_column` counts in this line
  int column = -1;   // byte offsets into the line, as CPython counts them
  int end_column = -1;
  bool torch = false;    // code of torch itself, or of the standard library
  bool library = false;  // code under site-packages

  // From this line up to where its last bracket is closed.
  const std::string& statement() const { return joined.empty() ? source : joined; }
};

}  // namespace devsan::report
