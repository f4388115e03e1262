// Python's own words, but for its constants.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace devsan::hooks {

inline constexpr std::array<std::string_view, 32> kPythonKeywords = {
    "and",  "as",       "assert",  "async", "await", "break",  "class", "continue", "def",  "del",  "elif",
    "else", "except",   "finally", "for",   "from",  "global", "if",    "import",   "in",   "is",   "lambda",
    "not",  "nonlocal", "or",      "pass",  "raise", "return", "try",   "while",    "with", "yield"};

inline bool is_python_keyword(std::string_view word) noexcept {
  return std::ranges::find(kPythonKeywords, word) != kPythonKeywords.end();
}

}  // namespace devsan::hooks
