#include "report/program/edits.h"

#include <algorithm>

#include "report/program/expressions.h"
#include "report/program/positions.h"
#include "report/program/precedence.h"
#include "report/program/source_file.h"

namespace devsan::program {
namespace {

std::string_view blanks_before(std::string_view line) {
  const std::size_t end = line.find_first_not_of(" \t\f");
  return line.substr(0, end == std::string_view::npos ? line.size() : end);
}

std::string_view line_break(const SourceFile& file) {
  const std::size_t at = file.text().find('\n');
  if (at == std::string_view::npos) return "\n";
  return at > 0 && file.text()[at - 1] == '\r' ? "\r\n" : "\n";
}

bool begins_line(Node node) {
  const Range range = node.range();
  const std::string_view line = node.file().line_text(range.line);
  return blanks_before(line).size() >= static_cast<std::size_t>(range.column);
}

std::uint32_t end_of_line(const SourceFile& file, std::uint32_t byte) {
  const int line = file.line_of(byte);
  return file.line_start(line) + static_cast<std::uint32_t>(file.line_text(line).size());
}

// Nothing but a comment follows on the line.
bool ends_line(Node node) {
  const SourceFile& file = node.file();
  const std::uint32_t end = node.end_byte();
  const std::string_view rest = file.text().substr(end, end_of_line(file, end) - end);
  const std::string_view behind = rest.substr(blanks_before(rest).size());
  return behind.empty() || behind.front() == '#';
}

bool is_keyword(std::string_view argument) {
  const std::size_t name = argument.find_first_of("=([{'\"<>!:+-*/ ");
  if (argument.starts_with("**")) return true;
  return name != std::string_view::npos && argument[name] == '=' && !argument.substr(name).starts_with("==");
}

// Where the call is written over several lines, the new argument gets one of its own, like the last.
Edit on_own_line(Node last, std::uint32_t after, bool comma_is_there, std::string_view argument) {
  const SourceFile& file = last.file();
  const std::uint32_t end = end_of_line(file, after);
  const std::string_view indent = blanks_before(file.line_text(last.line()));
  std::string text(comma_is_there ? "" : ",");
  text += file.text().substr(after, end - after);
  text += line_break(file);
  text += indent;
  text += argument;
  if (comma_is_there) text += ',';
  return {after, end, text};
}

Edit append_argument(Node list, Node last, std::string_view argument) {
  const SourceFile& file = list.file();
  Node comma = last.next_sibling();
  while (comma.is(Kind::Comment)) comma = comma.next_sibling();
  const bool comma_is_there = comma.text() == ",";
  const std::uint32_t after = comma_is_there ? comma.end_byte() : last.end_byte();
  const bool bracket_is_below = file.line_of(list.end_byte()) > file.line_of(after);
  if (bracket_is_below && begins_line(last) && file.line_of(last.end_byte()) == file.line_of(after)) {
    return on_own_line(last, after, comma_is_there, argument);
  }
  return {after, after, (comma_is_there ? " " : ", ") + std::string(argument)};
}

std::string indented(std::string_view code, std::string_view indent, std::string_view newline) {
  std::string text;
  while (!code.empty()) {
    const std::size_t end = std::min(code.find('\n'), code.size());
    if (end > 0) text += indent;
    text += code.substr(0, end);
    text += newline;
    code.remove_prefix(std::min(end + 1, code.size()));
  }
  return text;
}

// It may share a line with others, with semicolons between.
bool is_simple(std::string_view code) {
  const SourceFile file("", std::string(code));
  const std::vector<Node> statements = file.root().children();
  return statements.size() == 1 && code.find('\n') == std::string_view::npos && !statements[0].child(Field::Body) &&
         !statements[0].child(Field::Consequence) && !statements[0].is(Kind::DecoratedDefinition);
}

Node whole_statement(Node statement) {
  return statement.parent().is(Kind::DecoratedDefinition) ? statement.parent() : statement;
}

// The expression itself, for `*x` and `**x` what is behind the stars.
Node unstarred(Node node) {
  return node.is(Kind::ListSplat) || node.is(Kind::DictionarySplat) ? node.only_child() : node;
}

// The generator that is the only argument of a call has no parentheses but those of the call.
Edit replacement(Node node, std::string text) {
  if (node.is(Kind::GeneratorExpression) && node.role() == Field::Arguments) text = "(" + text + ")";
  return {node.begin_byte(), node.end_byte(), std::move(text)};
}

}  // namespace

std::optional<std::string> apply(std::string_view text, std::vector<Edit> edits) {
  std::stable_sort(edits.begin(), edits.end(),
                   [](const Edit& one, const Edit& other) { return one.begin < other.begin; });
  std::string result;
  std::uint32_t at = 0;
  for (const Edit& edit : edits) {
    if (edit.begin < at || edit.end < edit.begin || edit.end > text.size()) return std::nullopt;
    result += text.substr(at, edit.begin - at);
    result += edit.text;
    at = edit.end;
  }
  result += text.substr(at);
  return result;
}

bool parses(std::string_view text) {
  return !SourceFile("", std::string(text)).has_errors();
}

std::optional<Edit> insert_argument(Node call, std::string_view argument) {
  const CallParts parts = call_parts(call);
  if (!parts || !parses("f(" + std::string(argument) + ")\n")) return std::nullopt;
  const Node list = call.child(Field::Arguments);
  if (list.is(Kind::GeneratorExpression)) {
    return Edit{list.begin_byte(), list.end_byte(),
                "(" + std::string(list.text()) + ", " + std::string(argument) + ")"};
  }
  if (parts.arguments.empty()) {
    const std::uint32_t inside = list.begin_byte() + 1;
    return Edit{inside, inside, std::string(argument)};
  }
  if (!is_keyword(argument)) {
    const auto named = std::find_if(parts.arguments.begin(), parts.arguments.end(), [](const Argument& each) {
      return each.kind == Argument::Kind::Keyword || each.kind == Argument::Kind::DoubleStar;
    });
    if (named != parts.arguments.end()) {
      const std::uint32_t before = named->node.begin_byte();
      return Edit{before, before, std::string(argument) + ", "};
    }
  }
  return append_argument(list, parts.arguments.back().node, argument);
}

std::optional<Edit> set_keyword(Node call, std::string_view name, std::string_view value) {
  const CallParts parts = call_parts(call);
  if (const Node given = parts.keyword(name)) return replace_expression(given, value);
  return insert_argument(call, std::string(name) + "=" + std::string(value));
}

std::optional<Edit> replace_expression(Node expression, std::string_view code) {
  const auto binds = binding_of_code(code);
  if (!expression || !binds) return std::nullopt;
  std::string text(code);
  if (*binds < binding_needed(expression)) text = "(" + text + ")";
  return replacement(expression, std::move(text));
}

std::optional<Edit> append_to_expression(Node expression, std::string_view suffix) {
  const Node node = unstarred(expression);
  if (!node || !binding_of_code("x" + std::string(suffix))) return std::nullopt;
  std::string text(node.text());
  if (binding_of(node) < Binding::Primary || node.is(Kind::Integer)) text = "(" + text + ")";
  return replacement(node, text + std::string(suffix));
}

std::optional<Edit> wrap_in_call(Node expression, std::string_view callee, std::string_view further_arguments) {
  const Node node = unstarred(expression);
  if (!node) return std::nullopt;
  std::string argument(node.text());
  if (binding_of(node) < Binding::Conditional) argument = "(" + argument + ")";
  if (!further_arguments.empty()) argument += ", " + std::string(further_arguments);
  std::string text = std::string(callee) + "(" + argument + ")";
  if (!binding_of_code(text)) return std::nullopt;
  return replacement(node, std::move(text));
}

std::optional<Edit> insert_statement_after(Node statement, std::string_view code) {
  const Node node = whole_statement(statement);
  if (!is_statement(node) || !parses(code)) return std::nullopt;
  const SourceFile& file = node.file();
  while (code.ends_with('\n')) code.remove_suffix(1);
  if (!begins_line(node) || !ends_line(node)) {
    if (!is_simple(code)) return std::nullopt;
    return Edit{node.end_byte(), node.end_byte(), "; " + std::string(code)};
  }
  const std::string_view newline = line_break(file);
  std::string text = indented(code, blanks_before(file.line_text(node.line())), newline);
  const std::uint32_t end = end_of_line(file, node.end_byte());
  text.erase(text.size() - newline.size());
  return Edit{end, end, std::string(newline) + text};
}

std::optional<Edit> insert_statement_before(Node statement, std::string_view code) {
  const Node node = whole_statement(statement);
  if (!is_statement(node) || !parses(code)) return std::nullopt;
  const SourceFile& file = node.file();
  while (code.ends_with('\n')) code.remove_suffix(1);
  const std::uint32_t begin = node.begin_byte();
  if (!begins_line(node)) {
    if (!is_simple(code)) return std::nullopt;
    return Edit{begin, begin, std::string(code) + "; "};
  }
  const std::string_view indent = blanks_before(file.line_text(node.line()));
  std::string text = indented(code, indent, line_break(file));
  // The statement's own indentation is in front of the new code.
  text.erase(0, indent.size());
  return Edit{begin, begin, text + std::string(indent)};
}

}  // namespace devsan::program
