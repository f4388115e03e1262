#include "report/statement_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

#include "trace/words.h"

namespace devsan::report {
namespace {

using trace::is_word;

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

std::vector<std::string_view> parts_between_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  scan(text, [&](char c, std::size_t at, std::size_t depth) {
    if (c != ',' || depth != 0) return;
    parts.push_back(trimmed(text.substr(begin, at - begin)));
    begin = at + 1;
  });
  parts.push_back(trimmed(text.substr(begin)));
  return parts;
}

// Names, attributes, subscripts and tuples of these: no call, no operator, no literal.
bool is_path(std::string_view text) {
  bool plain = !text.empty();
  scan(text, [&](char c, std::size_t, std::size_t depth) {
    if (c == '(' || c == '{' || c == '#') plain = false;
    if (depth == 0 && !is_word(c) && c != '.' && c != ',' && c != ' ') plain = false;
  });
  const bool number = !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0;
  const bool literal = text == "None" || text == "True" || text == "False";
  return plain && !number && !literal && text.front() != '[';
}

// What moves or converts a tensor, and what goes through a container of them.
constexpr std::array<std::string_view, 18> kHandsBack = {
    "cpu",   "to",    "cuda", "detach", "numpy",  "clone",      "contiguous", "float", "half",
    "items", "tuple", "list", "dict",   "values", "isinstance", "type",       "zip",   "is_tensor"};
constexpr std::array<std::string_view, 3> kMoves = {"cpu", "to", "cuda"};

// The names of what a text calls.
std::vector<std::string_view> called_names(std::string_view text) {
  std::vector<std::string_view> names;
  for (std::size_t open = text.find('('); open != text.npos; open = text.find('(', open + 1)) {
    std::size_t begin = open;
    while (begin > 0 && is_word(text[begin - 1])) --begin;
    if (begin < open) names.push_back(text.substr(begin, open - begin));
  }
  return names;
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

std::string_view value_given(std::string_view line, std::string_view target) {
  const auto assignment = split_assignment(line);
  if (!assignment) return {};
  const std::vector<std::string_view> targets = parts_between_commas(assignment->target);
  const std::vector<std::string_view> values = parts_between_commas(assignment->value);
  if (targets.size() == 1 && targets.front() == target) return assignment->value;
  const auto found = std::ranges::find(targets, target);
  if (found == targets.end() || targets.size() != values.size()) return {};
  return values[static_cast<std::size_t>(found - targets.begin())];
}

bool stores_entry(std::string_view line) {
  const auto assignment = split_assignment(line);
  return assignment && assignment->target.ends_with(']');
}

bool only_takes_apart(std::string_view line) {
  const std::string_view text = statement_of(line);
  if (text.starts_with("for ") && text.ends_with(':')) return text.find(" in ") != text.npos;
  const auto assignment = split_assignment(line);
  return assignment && is_path(assignment->value);
}

bool only_hands_back_moved(std::string_view line) {
  constexpr std::string_view kReturn = "return ";
  const std::string_view statement = statement_of(line);
  if (!statement.starts_with(kReturn)) return false;
  const std::string_view value = statement.substr(kReturn.size());
  if (value.find_first_of("+-*/@%[") != value.npos || value.starts_with("self.")) return false;
  const std::vector<std::string_view> names = called_names(value);
  const auto is_one_of = [](const auto& list) {
    return [&list](std::string_view name) { return std::ranges::find(list, name) != list.end(); };
  };
  return std::ranges::any_of(names, is_one_of(kMoves)) && std::ranges::all_of(names, is_one_of(kHandsBack));
}

}  // namespace devsan::report
