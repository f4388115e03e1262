#include "hooks/inprocess/source/python_statements.h"

#include <algorithm>

#include "hooks/inprocess/source/python_text.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

using trace::contains;
using trace::is_word;

bool is_blank(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

bool closes(char c) noexcept {
  return c == ')' || c == ']' || c == '}';
}

}  // namespace

std::size_t end_of_string(std::string_view text, std::size_t at, int& lines) noexcept {
  const char quote = text[at];
  const auto three_at = [&](std::size_t k) {
    return text.size() > k + 2 && text[k] == quote && text[k + 1] == quote && text[k + 2] == quote;
  };
  const bool triple = three_at(at);
  for (at += triple ? 3 : 1; at < text.size(); ++at) {
    const bool escaped = text[at] == '\\';
    if (escaped) ++at;
    if (escaped && at + 1 < text.size() && text[at] == '\r' && text[at + 1] == '\n') ++at;
    if (at < text.size() && text[at] == '\n') {
      if (!triple && !escaped) return text.npos;
      ++lines;
    }
    if (escaped || at >= text.size() || text[at] != quote) continue;
    if (!triple) return at + 1;
    if (three_at(at)) return at + 3;
  }
  return text.npos;
}

bool is_formatted(std::string_view text, std::size_t at) noexcept {
  while (at > 0 && is_word(text[at - 1])) {
    if ((text[--at] | 0x20) == 'f') return true;
  }
  return false;
}

StatementReader::StatementReader(std::string_view text) noexcept : text_(text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
}

bool StatementReader::next(Statement& statement) noexcept {
  while (at_ < text_.size()) {
    statement = Statement();
    statement.first = number_;
    statement.indent = skip_indent();
    const std::size_t begin = at_;
    if (!read_lines(statement)) return false;
    statement.text = text_.substr(begin, end_ - begin);
    if (!statement.text.empty()) return true;
  }
  return false;
}

// As the interpreter counts it: a tab goes to the next eighth column, a form feed begins anew.
std::size_t StatementReader::skip_indent() noexcept {
  std::size_t column = 0;
  for (; at_ < text_.size() && is_blank(text_[at_]) && text_[at_] != '\r'; ++at_) {
    const char c = text_[at_];
    column = c == ' ' ? column + 1 : c == '\t' ? (column / 8 + 1) * 8 : 0;
  }
  return column;
}

// Up to the end of its last line; `end_` is behind its last character of code.
bool StatementReader::read_lines(Statement& statement) noexcept {
  depth_ = 0;
  brackets_[0] = Bracket();
  end_ = at_;
  bool header_ended = false;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') {
      statement.last = number_++;
      ++at_;
      if (depth_ == 0) return true;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (is_blank(c)) {
      ++at_;
    } else if (c == '\\') {
      if (!pass_continuation()) return false;
    } else {
      statement.one_line = statement.one_line || header_ended;
      if (!pass_code(statement)) return false;
      header_ended = header_ended || (c == ':' && depth_ == 0 && statement.lambdas == 0);
      end_ = at_;
    }
  }
  statement.last = number_;
  return depth_ == 0;
}

bool StatementReader::pass_continuation() noexcept {
  ++at_;
  if (at_ < text_.size() && text_[at_] == '\r') ++at_;
  if (at_ >= text_.size() || text_[at_] != '\n') return false;
  ++at_;
  ++number_;
  return true;
}

// One word, string, bracket or other character.
bool StatementReader::pass_code(Statement& statement) noexcept {
  const char c = text_[at_];
  if (c == '"' || c == '\'') return pass_string(statement);
  if (opens(c) || closes(c)) return pass_bracket(statement);
  if (is_word(c)) {
    pass_word(statement);
  } else {
    ++at_;
  }
  return true;
}

bool StatementReader::pass_bracket(Statement& statement) noexcept {
  if (opens(text_[at_++])) {
    if (++depth_ >= kMaxBrackets) return false;
    brackets_[static_cast<std::size_t>(depth_)] = Bracket();
    return true;
  }
  if (depth_ == 0) return false;
  const Bracket closed = brackets_[static_cast<std::size_t>(depth_--)];
  statement.nested = statement.nested || (closed.loops && closed.contains);
  if (closed.loops || closed.contains) brackets_[static_cast<std::size_t>(depth_)].contains = true;
  return true;
}

void StatementReader::pass_word(Statement& statement) noexcept {
  const std::size_t begin = at_;
  while (at_ < text_.size() && is_word(text_[at_])) ++at_;
  const std::string_view word = text_.substr(begin, at_ - begin);
  if (word == "lambda") ++statement.lambdas;
  if (word != "for" || depth_ == 0) return;
  Bracket& bracket = brackets_[static_cast<std::size_t>(depth_)];
  statement.comprehensions += bracket.loops ? 0 : 1;
  bracket.loops = true;
}

bool StatementReader::pass_string(Statement& statement) noexcept {
  const std::size_t begin = at_;
  at_ = end_of_string(text_, begin, number_);
  if (at_ == text_.npos) return false;
  const std::string_view string = text_.substr(begin, at_ - begin);
  const bool names_scopes =
      is_formatted(text_, begin) && contains(string, "{") && (contains(string, " for ") || contains(string, "lambda"));
  statement.opaque = statement.opaque || names_scopes;
  return true;
}

}  // namespace devsan::hooks
