// How far a line of Python leaves its statement open. The process that keeps the lines of a statement and the reader
// that joins them have to agree about where it ends.
#pragma once

#include <cstddef>
#include <string_view>

namespace devsan::trace {

// Statements of more lines are kept and read by their first one alone.
inline constexpr int kMaxStatementLines = 24;

struct LineBrackets {
  std::size_t code_end = 0;  // where a comment begins, or the line ends
  int opened = 0;            // brackets that it leaves open, fewer than none where it closes more
  bool in_string = false;    // a string goes on behind it, as one of several lines does
};

inline LineBrackets brackets_of(std::string_view line) noexcept {
  LineBrackets found{line.size(), 0, false};
  char quote = '\0';
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (quote != '\0') {
      if (c == '\\') ++at;
      if (c == quote) quote = '\0';
      continue;
    }
    if (c == '#') {
      found.code_end = at;
      break;
    }
    if (c == '"' || c == '\'') quote = c;
    if (std::string_view("([{").find(c) != std::string_view::npos) ++found.opened;
    if (std::string_view(")]}").find(c) != std::string_view::npos) --found.opened;
  }
  found.in_string = quote != '\0';
  return found;
}

}  // namespace devsan::trace
