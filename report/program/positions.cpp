#include "report/program/positions.h"

#include "report/program/scopes.h"
#include "report/program/source_file.h"

namespace devsan::program {
namespace {

// The nodes that contain the bytes, from the module inward. Siblings are in order and do not overlap.
Node smallest_covering(const SourceFile& file, std::uint32_t begin, std::uint32_t end) {
  Node found = file.root();
  for (Node at = found.first_child(); at;) {
    if (at.end_byte() < end || at.end_byte() <= begin) {
      at = at.next_sibling();
    } else if (at.begin_byte() <= begin && at.end_byte() >= end) {
      if (at.kind() == Kind::Token || at.is(Kind::Comment)) break;
      found = at;
      at = found.first_child();
    } else {
      break;
    }
  }
  return found;
}

// Where several nodes have one range, the innermost is the expression itself; what is inside of a string is none.
Node expression_of(Node node) {
  while (node.is(Kind::StringContent) || node.is(Kind::StringStart) || node.is(Kind::StringEnd) ||
         node.is(Kind::EscapeSequence) || node.is(Kind::EscapeInterpolation)) {
    node = node.parent();
  }
  return node;
}

std::string_view last_part(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

// Of those that begin at the line, the one of that whole name, or else the only one whose last part is equal.
Node named_at(const SourceFile& file, int line, std::string_view name, bool classes) {
  const Scopes& scopes = file.scopes();
  Node by_last;
  int count = 0;
  for (const auto& [index, scope] : scopes.all()) {
    if (scope.kind == ScopeKind::TypeParameters || (scope.kind == ScopeKind::Class) != classes) continue;
    if (scope.kind != ScopeKind::Module && first_line(scope.node) != line) continue;
    const std::string own = scopes.qualified_name(scope);
    if (own == name) return scope.node;
    if (last_part(own) != last_part(name)) continue;
    ++count;
    by_last = scope.node;
  }
  return count == 1 ? by_last : Node();
}

}  // namespace

Node node_at(const SourceFile& file, const Range& range) {
  if (range.line < 1 || range.line > file.line_count()) return {};
  if (range.column < 0) return statement_at(file, range.line);
  const std::uint32_t begin = file.byte_of(range.line, range.column);
  const bool ends = range.end_line >= range.line && range.end_column >= 0;
  const std::uint32_t end = ends ? file.byte_of(range.end_line, range.end_column) : begin;
  return expression_of(smallest_covering(file, begin, end < begin ? begin : end));
}

Node statement_at(const SourceFile& file, int line) {
  if (line < 1 || line > file.line_count()) return {};
  std::uint32_t begin = file.line_start(line);
  const std::string_view text = file.line_text(line);
  const std::size_t blank = text.find_first_not_of(" \t\f");
  begin += static_cast<std::uint32_t>(blank == std::string_view::npos ? text.size() : blank);
  const Node found = statement_of(smallest_covering(file, begin, begin));
  // The first of several statements on the line; of an empty or a comment's line, what is around.
  return found.is(Kind::Block) ? found.parent() : found;
}

bool is_statement(Node node) {
  const Kind above = node.parent().kind();
  if (!node.parent() || node.is(Kind::Comment) || node.kind() == Kind::Token) return false;
  return above == Kind::Module || (above == Kind::Block && !node.is(Kind::CaseClause));
}

Node statement_of(Node node) {
  while (node && !is_statement(node) && !node.is(Kind::Module)) node = node.parent();
  return node;
}

Node function_of(Node node) {
  if (!node) return {};
  const Scope* scope = &node.file().scopes().of(node);
  while (scope->kind == ScopeKind::Class || scope->kind == ScopeKind::TypeParameters) scope = scope->parent;
  return scope->node;
}

Node class_of(Node node) {
  if (!node) return {};
  const Scope* scope = &node.file().scopes().of(node);
  while (scope != nullptr && scope->kind != ScopeKind::Class) scope = scope->parent;
  return scope == nullptr ? Node() : scope->node;
}

Node class_of_method(Node function) {
  const Scope* scope = function ? function.file().scopes().made_by(function) : nullptr;
  if (scope == nullptr || scope->kind != ScopeKind::Function) return {};
  const Scope* around = scope->parent;
  while (around->kind == ScopeKind::TypeParameters) around = around->parent;
  return around->kind == ScopeKind::Class ? around->node : Node();
}

int first_line(Node node) {
  const Node around = node.parent();
  return around.is(Kind::DecoratedDefinition) ? around.line() : node.line();
}

Node function_at(const SourceFile& file, int line, std::string_view qualified_name) {
  if (qualified_name == "<module>") return file.root();
  return named_at(file, line, qualified_name, false);
}

Node class_at(const SourceFile& file, int line, std::string_view qualified_name) {
  return named_at(file, line, qualified_name, true);
}

std::vector<Node> functions_named(const SourceFile& file, std::string_view qualified_name) {
  std::vector<Node> found;
  const Scopes& scopes = file.scopes();
  for (const auto& [index, scope] : scopes.all()) {
    if (scope.kind == ScopeKind::Function && scopes.qualified_name(scope) == qualified_name)
      found.push_back(scope.node);
  }
  return found;
}

}  // namespace devsan::program
