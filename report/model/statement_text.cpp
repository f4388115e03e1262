#include "report/model/statement_text.h"

#include <string>

namespace devsan::report {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlank);
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// Calls `see(character, offset, depth)` for each character outside of strings, brackets counting as inside of
// themselves, up to a comment. False where a string or bracket stays open.
template <class See>
bool scan(std::string_view text, See&& see) {
  std::string open;
  char quote = '\0';
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != '\0') {
      if (c == '\\') ++at;
      if (c == quote) quote = '\0';
      continue;
    }
    if (c == '#') return see(c, at, open.size()), open.empty();
    if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      open += c;
    }
    see(c, at, open.size());
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) return false;
      open.pop_back();
    }
  }
  return open.empty() && quote == '\0';
}

std::string_view without_annotation(std::string_view target) {
  std::size_t colon = target.npos;
  scan(target, [&](char c, std::size_t at, std::size_t depth) {
    if (c == ':' && depth == 0 && colon == target.npos) colon = at;
  });
  return trimmed(target.substr(0, colon));
}

}  // namespace

std::string_view statement_of(std::string_view line) {
  const std::string_view text = trimmed(line);
  std::size_t end = text.size();
  const bool whole = scan(text, [&](char c, std::size_t at, std::size_t) {
    if (c == '#') end = at;
  });
  return whole ? trimmed(text.substr(0, end)) : std::string_view();
}

std::optional<AssignmentText> split_assignment(std::string_view line) {
  const std::string_view text = statement_of(line);
  std::size_t equals = text.npos;
  int count = 0;
  scan(text, [&](char c, std::size_t at, std::size_t depth) {
    if (c != '=' || depth != 0) return;
    const char before = at == 0 ? ' ' : text[at - 1];
    const char after = at + 1 < text.size() ? text[at + 1] : ' ';
    if (after == '=' || std::string_view("=!<>:").find(before) != std::string_view::npos) return;
    ++count;
    equals = std::string_view("+-*/%@&|^").find(before) == std::string_view::npos ? at : text.npos;
  });
  if (count != 1 || equals == text.npos) return std::nullopt;
  const AssignmentText parts{without_annotation(trimmed(text.substr(0, equals))), trimmed(text.substr(equals + 1))};
  if (parts.target.empty() || parts.value.empty()) return std::nullopt;
  return parts;
}

}  // namespace devsan::report
