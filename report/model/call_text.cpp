#include "report/model/call_text.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "trace/words.h"

namespace devsan::report {
namespace {

using trace::is_word;

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

std::string_view without_blanks(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// For each character how deep in brackets and strings it stands; a bracket or quote itself counts as inside. Empty
// where they do not match, or where a comment follows.
std::vector<int> depths_of(std::string_view text) {
  std::vector<int> depths(text.size());
  std::string open;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    depths[i] = static_cast<int>(open.size()) + 1;
    if (quote != '\0') {
      if (c == '\\') {
        if (++i < text.size()) depths[i] = depths[i - 1];
      } else if (c == quote) {
        quote = '\0';
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      open += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) return {};
      open.pop_back();
      depths[i] = static_cast<int>(open.size()) + 1;
    } else if (c == '#') {
      return {};
    } else {
      --depths[i];
    }
  }
  if (!open.empty() || quote != '\0') return {};
  return depths;
}

struct Operator {
  std::string_view text;
  int precedence;
};

constexpr int kAugmented = 0;
constexpr int kComparison = 1;
constexpr int kPower = 8;

// Longer ones first: "**=" is no "**".
constexpr std::array<Operator, 31> kOperators = {
    {{"**=", 0}, {"//=", 0}, {"<<=", 0}, {">>=", 0}, {"+=", 0}, {"-=", 0}, {"*=", 0}, {"/=", 0},
     {"%=", 0},  {"@=", 0},  {"&=", 0},  {"|=", 0},  {"^=", 0}, {"==", 1}, {"!=", 1}, {"<=", 1},
     {">=", 1},  {"**", 8},  {"//", 7},  {"<<", 5},  {">>", 5}, {"<", 1},  {">", 1},  {"|", 2},
     {"^", 3},   {"&", 4},   {"+", 6},   {"-", 6},   {"*", 7},  {"/", 7},  {"%", 7}}};
constexpr Operator kMatrixProduct = {"@", 7};

const Operator* operator_at(std::string_view rest) {
  const auto found = std::ranges::find_if(kOperators, [&](const Operator& op) { return rest.starts_with(op.text); });
  if (found != kOperators.end()) return &*found;
  return rest.starts_with(kMatrixProduct.text) ? &kMatrixProduct : nullptr;
}

// Whether the sign at `at` stands in a number: "1e-6".
bool in_exponent(std::string_view text, std::size_t at) {
  if (at < 2 || (text[at - 1] != 'e' && text[at - 1] != 'E')) return false;
  const std::size_t begin = trace::begin_of_path(text, at - 1);
  return is_digit(text[begin]) || (text[begin] == '.' && is_digit(text[begin + 1]));
}

// Between operands; otherwise it is a sign.
bool is_binary_at(std::string_view text, std::size_t at) {
  const std::string_view before = without_blanks(text.substr(0, at));
  if (before.empty()) return false;
  const char last = before.back();
  return (is_word(last) || std::string_view(")]}'\".").find(last) != std::string_view::npos) && !in_exponent(text, at);
}

// Words that make something else of a text than one operator: "a if b else c", "not a".
bool is_keyword(std::string_view word) {
  constexpr std::array<std::string_view, 12> kKeywords = {"if", "else", "and", "or",    "not",   "in",
                                                          "is", "for",  "as",  "await", "yield", "lambda"};
  return std::ranges::find(kKeywords, word) != kKeywords.end();
}

template <class Accepts>
bool has_word(std::string_view text, const std::vector<int>& depths, Accepts accepts) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (depths[i] != 0 || !is_word(text[i])) continue;
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (accepts(text.substr(i, end - i))) return true;
    i = end;
  }
  return false;
}

bool has_keyword(std::string_view text, const std::vector<int>& depths) {
  return has_word(text, depths, is_keyword);
}

// "x * y for x, y in pairs"
bool is_generator(std::string_view text) {
  const auto depths = depths_of(text);
  return !depths.empty() && has_word(text, depths, [](std::string_view word) { return word == "for"; });
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  const auto depths = depths_of(text);
  if (depths.empty()) return parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (depths[i] != 0 || text[i] != ',')) continue;
    if (const auto part = without_blanks(text.substr(begin, i - begin)); !part.empty()) parts.push_back(part);
    begin = i + 1;
  }
  return parts;
}

ArgumentText argument_of(std::string_view part) {
  std::size_t end = 0;
  while (end < part.size() && is_word(part[end])) ++end;
  const std::string_view rest = without_blanks(part.substr(end));
  if (end == 0 || is_digit(part[0]) || !rest.starts_with('=') || rest.starts_with("==")) return {"", part};
  return {part.substr(0, end), without_blanks(rest.substr(1))};
}

}  // namespace

std::optional<BinaryText> split_binary(std::string_view text) {
  const auto depths = depths_of(text);
  if (depths.empty() || has_keyword(text, depths)) return std::nullopt;
  const Operator* chosen = nullptr;
  std::size_t chosen_at = 0;
  int comparisons = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (depths[i] != 0) continue;
    const Operator* op = operator_at(text.substr(i));
    if (op == nullptr) {
      if (text[i] == ',' || text[i] == ':' || text[i] == '=') return std::nullopt;
      continue;
    }
    if (is_binary_at(text, i)) {
      if (op->precedence == kComparison && ++comparisons > 1) return std::nullopt;  // a chain: a < b < c
      // The last one of those that bind least was applied last; powers and assignments bind from the right.
      const bool from_right = op->precedence == kPower || op->precedence == kAugmented;
      if (chosen == nullptr || op->precedence < chosen->precedence ||
          (op->precedence == chosen->precedence && !from_right)) {
        chosen = op;
        chosen_at = i;
      }
    }
    i += op->text.size() - 1;
  }
  if (chosen == nullptr) return std::nullopt;
  const BinaryText parts{without_blanks(text.substr(0, chosen_at)),
                         without_blanks(text.substr(chosen_at + chosen->text.size()))};
  if (parts.left.empty() || parts.right.empty()) return std::nullopt;
  return parts;
}

std::optional<CallText> split_call(std::string_view text) {
  const auto depths = depths_of(text);
  if (depths.empty() || (text.back() != ')' && text.back() != ']')) return std::nullopt;
  std::size_t open = text.size() - 1;
  // The bracket that the last one closes: before it the text is at depth 0 again.
  while (open > 0 && depths[open - 1] != 0) {
    --open;
    if (depths[open] == 1 && text[open] == (text.back() == ')' ? '(' : '[')) break;
  }
  if (open == 0) return std::nullopt;
  const std::string_view function = without_blanks(text.substr(0, open));
  if (split_binary(function) || has_keyword(function, depths_of(function))) return std::nullopt;

  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  // The commas of `sum(w * m for w, m in pairs)` part no arguments.
  if (is_generator(inside)) return std::nullopt;
  CallText call;
  call.subscript = text.back() == ']';
  call.receiver = function;
  if (!call.subscript) {
    const auto function_depths = depths_of(function);
    std::size_t dot = function.size();
    while (dot > 0 && !(function[dot - 1] == '.' && function_depths[dot - 1] == 0)) --dot;
    call.receiver = dot == 0 ? std::string_view() : function.substr(0, dot - 1);
  }
  for (const std::string_view part : split_at_commas(inside)) {
    call.arguments.push_back(call.subscript ? ArgumentText{"", part} : argument_of(part));
  }
  return call;
}

std::optional<std::vector<std::string_view>> split_display(std::string_view text) {
  if (text.size() < 2) return std::nullopt;
  const bool list = text.front() == '[' && text.back() == ']';
  const bool tuple = text.front() == '(' && text.back() == ')';
  if (!list && !tuple) return std::nullopt;
  const std::string_view inside = text.substr(1, text.size() - 2);
  const auto depths = depths_of(inside);
  if (depths.empty() || has_keyword(inside, depths)) return std::nullopt;
  return split_at_commas(inside);
}

bool is_literal(std::string_view text) {
  if (text == "None" || text == "True" || text == "False" || text == "...") return true;
  if (text.starts_with('\'') || text.starts_with('"')) return true;
  return std::ranges::none_of(text, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) && c != 'e'; }) &&
         text.find_first_of("([{_") == text.npos;
}

std::size_t find_name(std::string_view text, std::string_view name, std::size_t begin) {
  if (name.empty()) return text.npos;
  for (std::size_t at = text.find(name, begin); at != text.npos; at = text.find(name, at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const char after = at + name.size() < text.size() ? text[at + name.size()] : ' ';
    if (!is_word(before) && before != '.' && !(is_word(after) && is_word(name.back()))) return at;
  }
  return text.npos;
}

}  // namespace devsan::report
