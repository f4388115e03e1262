#include "hooks/inprocess/source/python_twins.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <utility>
#include <vector>

#include "hooks/inprocess/source/python_statements.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

using Tokens = std::vector<std::string_view>;

constexpr std::size_t kFewestTokens = 5;  // `y = f(x)` has six

// Words, strings and single characters; no blanks.
Tokens tokens_of(std::string_view text) {
  Tokens tokens;
  int lines = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (is_quote(text[at])) end = std::min(end_of_string(text, at, lines), text.size());
    if (trace::is_word(text[at])) {
      while (end < text.size() && trace::is_word(text[end])) ++end;
    }
    if (std::isspace(static_cast<unsigned char>(text[at])) == 0) tokens.push_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

// Names and strings may differ, and nothing else: no number, no keyword.
bool is_alike(std::string_view one, std::string_view other) {
  if (one == other) return true;
  constexpr std::array<std::string_view, 8> kKeywords = {"return", "if", "else", "for", "in", "not", "and", "or"};
  const auto is_keyword = [&](std::string_view word) { return std::ranges::find(kKeywords, word) != kKeywords.end(); };
  const auto is_name = [](std::string_view token) {
    return trace::is_word(token.front()) && std::isdigit(static_cast<unsigned char>(token.front())) == 0;
  };
  if (is_quote(one.front())) return is_quote(other.front());
  return is_name(one) && is_name(other) && !is_keyword(one) && !is_keyword(other);
}

// The token behind the bracket that closes the one at `open`; the number of tokens where none does.
std::size_t behind_bracket(const Tokens& tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < tokens.size(); ++at) {
    if (tokens[at] == "(" || tokens[at] == "[" || tokens[at] == "{") ++depth;
    if (tokens[at] == ")" || tokens[at] == "]" || tokens[at] == "}") --depth;
    if (depth == 0) return at + 1;
  }
  return tokens.size();
}

// Where the move ends that begins at a token: `.to(x.device)`. The token itself where none does.
std::size_t behind_move(const Tokens& tokens, std::size_t at) {
  constexpr std::array<std::string_view, 3> kMoves = {"to", "cuda", "cpu"};
  const bool call = at + 2 < tokens.size() && tokens[at] == "." && tokens[at + 2] == "(";
  if (!call || std::ranges::find(kMoves, tokens[at + 1]) == kMoves.end()) return at;
  return behind_bracket(tokens, at + 2);
}

bool is_closing(std::string_view token) noexcept {
  return token == ")" || token == "]";
}

// The first token of the expression that ends before one: a name with what is called, subscripted or asked of it.
std::size_t begin_of_expression(const Tokens& tokens, std::size_t end) {
  std::size_t at = end;
  while (at > 0) {
    const std::string_view token = tokens[at - 1];
    if (is_closing(token)) {
      int depth = 0;
      do {
        --at;
        if (is_closing(tokens[at])) ++depth;
        if (tokens[at] == "(" || tokens[at] == "[") --depth;
      } while (depth > 0 && at > 0);
      if (at == 0 || !(trace::is_word(tokens[at - 1].front()) || is_closing(tokens[at - 1]))) return at;
    } else if (trace::is_word(token.front())) {
      --at;
      if (at == 0 || tokens[at - 1] != ".") return at;
      --at;
    } else {
      return at;
    }
  }
  return at;
}

std::string text_between(const Tokens& tokens, std::size_t begin, std::size_t end) {
  if (begin >= end) return "";
  const char* first = tokens[begin].data();
  return {first, static_cast<std::size_t>(tokens[end - 1].data() + tokens[end - 1].size() - first)};
}

}  // namespace

std::optional<TwinMove> moved_by_twin(std::string_view statement, std::string_view other) {
  const Tokens mine = tokens_of(statement);
  const Tokens theirs = tokens_of(other);
  std::optional<TwinMove> found;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < mine.size() || j < theirs.size()) {
    const std::size_t behind = behind_move(theirs, j);
    if (behind != j && behind_move(mine, i) == i) {
      if (found) return std::nullopt;
      found = TwinMove{text_between(mine, begin_of_expression(mine, i), i), text_between(theirs, j, behind)};
      j = behind;
      continue;
    }
    if (i == mine.size() || j == theirs.size() || !is_alike(mine[i], theirs[j])) return std::nullopt;
    ++i;
    ++j;
  }
  return mine.size() >= kFewestTokens && found && !found->expression.empty() ? found : std::nullopt;
}

std::vector<Twin> moving_twins(const SourceLines& lines, int line) {
  std::vector<Twin> found;
  const std::string statement = statement_at(lines, line);
  const int definition = enclosing_line(lines, line, "def ");
  const int end = end_of_function(lines, line);
  for (int other = definition + 1; other <= end; ++other) {
    if (other == line || is_blank(lines[other]) || enclosing_line(lines, other, "def ") != definition) continue;
    if (auto move = moved_by_twin(statement, statement_at(lines, other))) found.push_back({other, std::move(*move)});
  }
  return found;
}

}  // namespace devsan::hooks
