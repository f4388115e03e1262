#include "hooks/inprocess/source/python_text.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxLines = 20000;
constexpr int kMaxStatementLines = 24;

using trace::is_word;
using trace::name_in;

// Follows brackets and strings through a text.
class Nesting {
 public:
  void pass(char c) noexcept {
    if (quote_ != 0) {
      if (c == quote_ && !escaped_) quote_ = 0;
      escaped_ = c == '\\' && !escaped_;
      return;
    }
    if (c == '"' || c == '\'') quote_ = c;
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if (c == ')' || c == ']' || c == '}') --depth_;
  }
  bool in_string() const noexcept { return quote_ != 0; }
  int depth() const noexcept { return depth_; }

 private:
  char quote_ = 0;
  bool escaped_ = false;
  int depth_ = 0;
};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  Nesting nesting;
  std::size_t begin = 0;
  for (std::size_t k = 0; k <= text.size(); ++k) {
    if (k == text.size() || (text[k] == ',' && nesting.depth() == 0 && !nesting.in_string())) {
      parts.emplace_back(trimmed(text.substr(begin, k - begin)));
      begin = k + 1;
    } else {
      nesting.pass(text[k]);
    }
  }
  if (!parts.empty() && parts.back().empty()) parts.pop_back();
  return parts;
}

// Code without its comment and the blanks around it.
void append_code(std::string& code, std::string_view line, Nesting& nesting) {
  for (const char c : trimmed(line)) {
    if (c == '#' && !nesting.in_string()) break;
    nesting.pass(c);
    code += c;
  }
  while (code.ends_with(' ') && !nesting.in_string()) code.pop_back();
}

}  // namespace

std::string_view trimmed(std::string_view text) noexcept {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

bool is_identifier(std::string_view text) noexcept {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::ranges::all_of(text, is_word);
}

SourceLines::SourceLines(std::string_view text) {
  while (!text.empty() && lines_.size() < kMaxLines) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines_.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

namespace {

// The statement at a line, and the line that it ends on.
std::pair<std::string, int> statement_and_end(const SourceLines& lines, int line) {
  std::string statement;
  Nesting nesting;
  int k = line;
  for (; k < line + kMaxStatementLines; ++k) {
    append_code(statement, lines[k], nesting);
    if (nesting.depth() <= 0 || nesting.in_string()) return {std::move(statement), k};
    statement += ' ';
  }
  return {std::move(statement), k - 1};
}

}  // namespace

std::string statement_at(const SourceLines& lines, int line) {
  return statement_and_end(lines, line).first;
}

int end_of_statement(const SourceLines& lines, int line) {
  return statement_and_end(lines, line).second;
}

namespace {

// How far a line is indented; its length where it is blank.
std::size_t indentation(std::string_view line) noexcept {
  return std::min(line.find_first_not_of(" \t"), line.size());
}

// Neither code nor a decorator stands there.
bool is_blank_line(std::string_view line) noexcept {
  const std::size_t begin = indentation(line);
  return begin == line.size() || line[begin] == '#' || line[begin] == '\r';
}

// `) -> Tensor:` goes on with the statement above, however little it is indented.
bool closes_bracket(std::string_view line) noexcept {
  const std::size_t begin = indentation(line);
  return begin < line.size() && std::string_view(")]}").find(line[begin]) != std::string_view::npos;
}

// "def …" of "async def …".
std::string_view without_async(std::string_view code) noexcept {
  constexpr std::string_view kAsync = "async ";
  return code.starts_with(kAsync) ? trimmed(code.substr(kAsync.size())) : code;
}

}  // namespace

int enclosing_line(const SourceLines& lines, int number, std::string_view keyword) {
  std::size_t most = indentation(lines[number]);
  for (int k = number - 1; k > 0 && most > 0; --k) {
    const std::string_view text = lines[k];
    if (is_blank_line(text) || indentation(text) >= most || closes_bracket(text)) continue;
    most = indentation(text);
    if (without_async(text.substr(most)).starts_with(keyword)) return k;
  }
  return 0;
}

namespace {

// The last line of the block that a line stands in, which begins under the line `head`.
int end_of_block(const SourceLines& lines, int number, int head) {
  int last = number;
  for (int k = number + 1; k <= lines.count(); ++k) {
    if (is_blank_line(lines[k]) || closes_bracket(lines[k])) continue;
    if (indentation(lines[k]) <= indentation(lines[head])) break;
    last = k;
  }
  return last;
}

// "pick" of "    def pick(self):", with `keyword` "def ".
std::string defined_name(std::string_view line, std::string_view keyword) {
  line = without_async(line.substr(indentation(line)));
  line.remove_prefix(std::min(keyword.size(), line.size()));
  return std::string(line.substr(0, line.find_first_of("(: ")));
}

}  // namespace

int end_of_function(const SourceLines& lines, int number) {
  const int def = enclosing_line(lines, number, "def ");
  return def != 0 ? end_of_block(lines, number, def) : lines.count();
}

std::string qualified_function(const SourceLines& lines, int number) {
  const int def = enclosing_line(lines, number, "def ");
  if (def == 0) return "<module>";
  const int type = enclosing_line(lines, def, "class ");
  return (type != 0 ? defined_name(lines[type], "class ") + "." : "") + defined_name(lines[def], "def ");
}

std::size_t call_in(std::string_view line, std::string_view name) noexcept {
  for (std::size_t at = name_in(line, name); at != line.npos; at = name_in(line, name, at + 1)) {
    const std::string_view before = line.substr(0, at);
    const bool called = line.substr(at + name.size()).starts_with('(');
    if (called && !before.ends_with("def ") && !before.ends_with("class ") && before.find('#') == before.npos)
      return at;
  }
  return line.npos;
}

std::size_t end_of_expression(std::string_view text, std::size_t begin) noexcept {
  Nesting nesting;
  for (std::size_t k = begin; k < text.size(); ++k) {
    const bool outside = nesting.depth() == 0 && !nesting.in_string();
    if (outside && std::string_view(",)]}").find(text[k]) != std::string_view::npos) return k;
    nesting.pass(text[k]);
  }
  return text.size();
}

std::size_t closing_of(std::string_view text, std::size_t open) noexcept {
  Nesting nesting;
  for (std::size_t k = open; k < text.size(); ++k) {
    nesting.pass(text[k]);
    if (nesting.depth() == 0) return k;
  }
  return text.npos;
}

std::optional<std::vector<std::string>> arguments_at(std::string_view text, std::size_t open) {
  const std::size_t closing = closing_of(text, open);
  if (closing == text.npos) return std::nullopt;
  return split(text.substr(open + 1, closing - open - 1));
}

std::string code_text(const SourceLines& lines, const trace::Position& at) {
  if (at.column < 0 || at.end_line < at.line || at.end_line - at.line > kMaxStatementLines) return "";
  std::string text;
  Nesting nesting;
  for (int k = at.line; k <= at.end_line; ++k) {
    const auto begin = k == at.line ? static_cast<std::size_t>(at.column) : 0;
    const auto end = k == at.end_line ? static_cast<std::size_t>(at.end_column) : lines[k].size();
    if (begin > end || end > lines[k].size()) return "";
    append_code(text, lines[k].substr(begin, end - begin), nesting);
    if (k < at.end_line) text += ' ';
  }
  return text;
}

namespace {

// Where the first `=` of an assignment stands; npos where nothing is assigned, and in `total += x`.
std::size_t equals_of(std::string_view statement) noexcept {
  Nesting nesting;
  for (std::size_t k = 0; k + 1 < statement.size(); ++k) {
    const bool outside = nesting.depth() == 0 && !nesting.in_string();
    if (outside && statement[k] == '=') {
      const bool compares =
          statement[k + 1] == '=' ||
          (k > 0 && std::string_view("=!<>+-*/|&^%@:").find(statement[k - 1]) != std::string_view::npos);
      return compares ? statement.npos : k;
    }
    nesting.pass(statement[k]);
  }
  return statement.npos;
}

}  // namespace

std::string_view loop_targets(std::string_view statement) noexcept {
  constexpr std::string_view kFor = "for ";
  const std::size_t in = statement.find(" in ");
  return statement.starts_with(kFor) && in != statement.npos ? statement.substr(kFor.size(), in - kFor.size())
                                                             : std::string_view();
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

std::optional<std::string> assigned_to(std::string_view statement, std::string_view target) {
  const std::size_t equals = equals_of(statement);
  if (equals == statement.npos) return std::nullopt;
  const std::vector<std::string> targets = split(statement.substr(0, equals));
  const std::string_view value = trimmed(statement.substr(equals + 1));
  for (std::size_t k = 0; k < targets.size(); ++k) {
    const std::string_view name = trimmed(std::string_view(targets[k]).substr(0, targets[k].find(':')));
    if (name != target) continue;
    if (targets.size() == 1) return std::string(value);
    std::vector<std::string> values = split(value);
    return values.size() == targets.size() ? values[k] : std::string();
  }
  return std::nullopt;
}

namespace {

// Whether a text has this name in it, as a whole word: a variable, or in quotes.
bool has_word(std::string_view text, std::string_view name) noexcept {
  for (std::size_t at = name_in(text, name); at != text.npos; at = name_in(text, name, at + 1)) {
    if (at == 0 || text[at - 1] != '.') return true;
  }
  return false;
}

}  // namespace

std::vector<int> assignments_of(const SourceLines& lines, std::string_view variable, int begin, int end) {
  std::vector<int> found;
  for (int k = begin; k < end; ++k) {
    if (is_blank_line(lines[k])) continue;
    const auto [statement, last] = statement_and_end(lines, k);
    if (has_word(statement, variable) && assigned_to(statement, variable)) found.push_back(k);
    k = last;
  }
  return found;
}

std::string only_value_above(const SourceLines& lines, int line, std::string_view variable) {
  const int definition = enclosing_line(lines, line, "def ");
  const std::vector<int> assigned = assignments_of(lines, variable, definition + 1, line);
  return assigned.size() == 1 ? assigned_to(statement_at(lines, assigned.front()), variable).value_or("") : "";
}

}  // namespace devsan::hooks
