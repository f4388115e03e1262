// The file that `devsan rules compile` makes of a file of rules, so that a process needs no parser of TOML: a mark with
// the name of that file, then one rule a line, each behind its line there and a tab. What is in a rule, rules/ knows.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace devsan::trace {

inline constexpr std::string_view kCompiledRulesMark = "devsan-rules/1 ";
inline constexpr std::size_t kMaxCompiledRules = std::size_t{1} << 20;

// `text`: what is behind the line with the mark. Lines that have no number are passed over.
template <class Visit>
void for_each_compiled_rule(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
    std::int32_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    const auto digits = static_cast<std::size_t>(end - line.data());
    if (error == std::errc{} && digits < line.size() && line[digits] == '\t') visit(number, line.substr(digits + 1));
  }
}

}  // namespace devsan::trace
