#include "hooks/inprocess/source/python_names.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "hooks/inprocess/source/python_keywords.h"
#include "hooks/inprocess/source/python_statements.h"
#include "hooks/inprocess/source/python_text.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

bool is_own_word(std::string_view word) noexcept {
  return is_python_keyword(word) || word == "None" || word == "True" || word == "False";
}

bool is_digit(char c) noexcept {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

std::size_t end_of_path(std::string_view text, std::size_t begin) noexcept {
  std::size_t end = begin;
  while (end < text.size() && (trace::is_word(text[end]) || text[end] == '.')) ++end;
  return text[end - 1] == '.' ? end - 1 : end;
}

// "self.net" of "self.net.run"; empty for a single name.
std::string_view without_last(std::string_view path) noexcept {
  const std::size_t dot = path.rfind('.');
  return dot != path.npos ? path.substr(0, dot) : std::string_view();
}

// Whether the name that ends in front of `end` is a keyword's: "axis=", no "==".
bool is_keyword(std::string_view text, std::size_t end) noexcept {
  const std::size_t at = std::min(text.find_first_not_of(" \t\n", end), text.size());
  return at < text.size() && text[at] == '=' && !text.substr(at).starts_with("==");
}

}  // namespace

std::vector<std::string> paths_of_variables(std::string_view text) {
  std::vector<std::string> paths;
  int depth = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    int lines = 0;
    if (is_quote(c)) {
      at = std::min(end_of_string(text, at, lines), text.size());
      continue;
    }
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (!trace::is_word(c)) {
      ++at;
      continue;
    }
    const bool attribute = at > 0 && text[at - 1] == '.';
    const std::size_t end = end_of_path(text, at);
    std::string_view path = text.substr(at, end - at);
    const bool prefix = end < text.size() && is_quote(text[end]);  // of a string, as in r"…"
    const bool keyword = depth > 0 && is_keyword(text, end);
    if (end < text.size() && text[end] == '(') path = without_last(path);
    at = end;
    if (attribute || prefix || keyword || path.empty() || is_digit(path.front())) continue;
    if (is_own_word(path) || std::ranges::find(paths, path) != paths.end()) continue;
    paths.emplace_back(path);
  }
  return paths;
}

std::string_view assigned_text(std::string_view statement) noexcept {
  std::string_view text = trimmed(statement);
  if (text.starts_with("async ")) text = trimmed(text.substr(6));
  const std::string_view targets = loop_targets(text);
  if (!targets.empty()) {
    const auto behind = static_cast<std::size_t>(targets.data() + targets.size() - text.data());
    const std::size_t in = text.find("in ", behind);
    return in != text.npos ? trimmed(text.substr(in + 3)) : text;
  }
  for (std::size_t equals = equals_of(text); equals != text.npos; equals = equals_of(text)) {
    text = trimmed(text.substr(equals + 1));
  }
  return text;
}

}  // namespace devsan::hooks
