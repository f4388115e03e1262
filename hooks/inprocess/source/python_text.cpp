#include "hooks/inprocess/source/python_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxLines = 20000;
constexpr int kMaxStatementLines = 24;

using trace::is_word;

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

std::string leading_name(std::string_view statement) {
  const auto end = std::ranges::find_if_not(statement, is_word);
  const std::string_view word = statement.substr(0, static_cast<std::size_t>(end - statement.begin()));
  return is_identifier(word) ? std::string(word) : std::string();
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

bool goes_on_to(const SourceLines& lines, int begin, int line) {
  return begin == line || (begin < line && line <= end_of_statement(lines, begin));
}

std::size_t indentation(std::string_view line) noexcept {
  return std::min(line.find_first_not_of(" \t"), line.size());
}

bool is_blank(std::string_view line) noexcept {
  const std::size_t begin = indentation(line);
  return begin == line.size() || line[begin] == '#' || line[begin] == '\r';
}

namespace {

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
    if (is_blank(text) || indentation(text) >= most || closes_bracket(text)) continue;
    most = indentation(text);
    if (without_async(text.substr(most)).starts_with(keyword)) return k;
  }
  return 0;
}

int decorator_of(const SourceLines& lines, int type, std::string_view name) {
  const std::size_t outer = indentation(lines[type]);
  for (int k = type + 2; type != 0 && k <= lines.count(); ++k) {
    const std::string_view text = lines[k];
    if (is_blank(text)) continue;
    if (indentation(text) <= outer) break;
    const std::string_view above = lines[k - 1];
    const bool defines = text.substr(indentation(text)).starts_with("def ") && defined_name(text, "def ") == name;
    if (defines && above.find('@') == indentation(above)) return k - 1;
  }
  return 0;
}

int end_of_block(const SourceLines& lines, int number, int head) {
  int last = number;
  for (int k = number + 1; k <= lines.count(); ++k) {
    if (is_blank(lines[k]) || closes_bracket(lines[k])) continue;
    if (indentation(lines[k]) <= indentation(lines[head])) break;
    last = k;
  }
  return last;
}

int end_of_function(const SourceLines& lines, int number) {
  const int def = enclosing_line(lines, number, "def ");
  return def != 0 ? end_of_block(lines, number, def) : lines.count();
}

bool is_path(std::string_view text) noexcept {
  return std::ranges::all_of(
      text, [](char c) { return trace::is_word(c) || std::string_view(".[]'\"").find(c) != std::string_view::npos; });
}

int condition_around(const SourceLines& lines, int line) {
  const int condition = enclosing_line(lines, line, "if ");
  return condition > enclosing_line(lines, line, "def ") ? condition : 0;
}

int definition_below(const SourceLines& lines, int first) {
  for (int line = first; !trimmed(lines[line]).empty(); ++line) {
    if (without_async(trimmed(lines[line])).starts_with("def ")) return line;
  }
  return 0;
}

std::string function_defined(std::string_view line) {
  constexpr std::string_view kKeyword = "def ";
  return without_async(trimmed(line)).starts_with(kKeyword) ? defined_name(line, kKeyword) : std::string();
}

std::string defined_name(std::string_view line, std::string_view keyword) {
  line = without_async(line.substr(indentation(line)));
  line.remove_prefix(std::min(keyword.size(), line.size()));
  return std::string(line.substr(0, line.find_first_of("(: ")));
}

int only_line_of(const SourceLines& lines, int first, std::string_view word) {
  const int end = end_of_function(lines, first + 2);
  int found = 0;
  for (int k = first + 1; k <= end; ++k) {
    if (trimmed(lines[k]).starts_with(word) && std::exchange(found, k) != 0) return 0;
  }
  return found;
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

// "name" of `torch.device(name)`; any other expression as it is.
std::string_view inside_device(std::string_view expression) {
  constexpr std::string_view kMade = "torch.device(";
  if (!expression.starts_with(kMade) || !expression.ends_with(')')) return expression;
  return trimmed(expression.substr(kMade.size(), expression.size() - kMade.size() - 1));
}

}  // namespace

std::string device_reference(std::string_view expression) {
  constexpr std::string_view kDevice = ".device";
  expression = inside_device(trimmed(expression));
  if (expression.ends_with(kDevice) && expression != "self.device") expression.remove_suffix(kDevice.size());
  const bool path = !expression.empty() && std::isdigit(static_cast<unsigned char>(expression.front())) == 0 &&
                    std::ranges::all_of(expression, [](char c) { return is_word(c) || c == '.'; });
  return path && expression != "torch" ? std::string(expression) : std::string();
}

namespace {

// "**self.options" of `x.to(**self.options)`, where nothing else is unpacked.
std::string unpacked_argument(std::string_view call) {
  std::string found;
  for (std::size_t at = call.find("**"); at != call.npos; at = call.find("**", at + 2)) {
    const std::size_t before = call.find_last_not_of(' ', at - 1);
    if (at == 0 || before == call.npos || (call[before] != '(' && call[before] != ',')) continue;
    const std::string_view name = trimmed(call.substr(at + 2, end_of_expression(call, at + 2) - at - 2));
    if (!found.empty() || device_reference(name) != name) return "";
    found = "**" + std::string(name);
  }
  return found;
}

}  // namespace

std::string device_expression(std::string_view call) {
  constexpr std::array<std::string_view, 4> kBefore = {"device=", ".to(", "_like(", "map_location="};
  std::string found;
  for (const std::string_view before : kBefore) {
    for (std::size_t at = call.find(before); at != call.npos; at = call.find(before, at + 1)) {
      if (before == "device=" && (at == 0 || is_word(call[at - 1]))) continue;
      const std::size_t begin = at + before.size();
      const std::string_view expression = call.substr(begin, end_of_expression(call, begin) - begin);
      // `dtype=`, or a `device=` of its own turn; what is unpacked comes last.
      if (expression.find('=') != expression.npos || expression.starts_with('*')) continue;
      const bool type = expression.starts_with("torch.") && !expression.starts_with("torch.device");
      if (type || expression.find("dtype") != expression.npos) continue;  // a move to another type
      std::string one(entry_reference(expression) ? trimmed(expression) : std::string_view());
      if (one.empty()) one = device_reference(expression);
      if (one.empty() || (!found.empty() && one != found)) return "";
      found = std::move(one);
    }
  }
  return found.empty() ? unpacked_argument(call) : found;
}

bool is_dict_display(std::string_view text) noexcept {
  text = trimmed(text);
  return text.starts_with("dict(") || text.starts_with('{');
}

std::string entry_of_display(std::string_view display, std::string_view key) {
  display = trimmed(display);
  const bool by_call = display.starts_with("dict(");
  if (!is_dict_display(display)) return "";
  const auto entries = arguments_at(display, by_call ? 4 : 0);
  if (!entries) return "";
  for (const std::string& entry : *entries) {
    const std::size_t colon = entry.find(by_call ? '=' : ':');
    if (colon == entry.npos) continue;
    std::string_view name = trimmed(std::string_view(entry).substr(0, colon));
    const bool quoted = name.size() > 1 && (name.front() == '"' || name.front() == '\'') && name.back() == name.front();
    if (quoted) name = name.substr(1, name.size() - 2);
    if (name == key && quoted != by_call) return std::string(trimmed(std::string_view(entry).substr(colon + 1)));
  }
  return "";
}

std::optional<EntryReference> entry_reference(std::string_view expression) {
  expression = inside_device(trimmed(expression));
  const std::size_t open = expression.find('[');
  if (open == expression.npos || expression.size() < open + 5 || !expression.ends_with(']')) return std::nullopt;
  const std::string_view container = expression.substr(0, open);
  const std::string_view key = expression.substr(open + 1, expression.size() - open - 2);
  const bool quoted = (key.front() == '"' || key.front() == '\'') && key.back() == key.front();
  if (!quoted || device_reference(container) != container) return std::nullopt;
  return EntryReference{std::string(container), std::string(key.substr(1, key.size() - 2))};
}

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

std::string_view loop_targets(std::string_view statement) noexcept {
  constexpr std::string_view kFor = "for ";
  const std::size_t in = statement.find(" in ");
  return statement.starts_with(kFor) && in != statement.npos ? statement.substr(kFor.size(), in - kFor.size())
                                                             : std::string_view();
}

bool has_word(std::string_view text, std::string_view name) noexcept {
  for (std::size_t at = name_in(text, name); at != text.npos; at = name_in(text, name, at + 1)) {
    if (at == 0 || text[at - 1] != '.') return true;
  }
  return false;
}

bool mentions_name(std::string_view text, std::string_view name) noexcept {
  return name_in(text, name) != text.npos;
}

std::optional<EntryStore> entry_stored(std::string_view statement) {
  std::optional<EntryStore> found;
  for (std::size_t equals = equals_of(statement); equals != statement.npos; equals = equals_of(statement)) {
    const std::string_view target = trimmed(statement.substr(0, equals));
    statement = trimmed(statement.substr(equals + 1));
    const std::size_t open = target.find('[');
    const auto of_path = [](char c) { return is_word(c) || c == '.'; };
    if (open == target.npos || open == 0 || !std::ranges::all_of(target.substr(0, open), of_path)) continue;
    if (closing_of(target, open) + 1 != target.size()) continue;
    found = {std::string(target.substr(0, open)),
             std::string(trimmed(target.substr(open + 1, target.size() - open - 2))), ""};
  }
  if (found) found->value = statement;
  return found;
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

std::vector<int> assignments_of(const SourceLines& lines, std::string_view variable, int begin, int end) {
  std::vector<int> found;
  for (int k = begin; k < end; ++k) {
    if (is_blank(lines[k])) continue;
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
