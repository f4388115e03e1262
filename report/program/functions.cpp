#include "report/program/functions.h"

#include <algorithm>

#include "report/program/definitions.h"
#include "report/program/expressions.h"
#include "report/program/flow.h"
#include "report/program/source_file.h"

namespace devsan::program {
namespace {

// The code of `scope` and of what runs in place in it, but for classes.
bool is_own_code(const Scope* scope, const Scope& own) {
  while (scope != nullptr && scope != &own && scope->kind == ScopeKind::Comprehension) scope = scope->parent;
  return scope == &own;
}

template <typename Wanted>
std::vector<Node> own_nodes(Node function, Wanted wanted) {
  std::vector<Node> found;
  const Scopes& scopes = function.file().scopes();
  const Scope* own = scopes.made_by(function);
  if (own == nullptr) return found;
  for (std::uint32_t at = function.index(); at < function.subtree_end(); ++at) {
    const Node node = function.file().node(at);
    if (wanted(node) && is_own_code(&scopes.of(node), *own)) found.push_back(node);
  }
  return found;
}

template <typename Wanted>
std::vector<Node> calls_where(const SourceFile& file, Wanted wanted) {
  std::vector<Node> found;
  for (std::uint32_t at = 0; at < file.size(); ++at) {
    const Node node = file.node(at);
    if (node.is(Kind::Call) && wanted(node.child(Field::Function))) found.push_back(node);
  }
  return found;
}

bool end_is_reached(Node function) {
  const SourceFile& file = function.file();
  return !file.flow().graph(*file.scopes().made_by(function)).ends().empty();
}

}  // namespace

Returns returns_of(Node function) {
  Returns returns;
  if (function.is(Kind::Lambda)) {
    returns.values.push_back(function.child(Field::Body));
    return returns;
  }
  if (!function.is(Kind::FunctionDefinition)) return returns;
  returns.may_return_none = end_is_reached(function);
  for (const Node node :
       own_nodes(function, [](Node each) { return each.is(Kind::ReturnStatement) || each.is(Kind::Yield); })) {
    const std::vector<Node> value = node.children();
    if (!value.empty()) (node.is(Kind::Yield) ? returns.yielded : returns.values).push_back(value.front());
    if (value.empty() && node.is(Kind::ReturnStatement)) returns.may_return_none = true;
  }
  return returns;
}

std::vector<Node> calls_in(Node function) {
  return own_nodes(function, [](Node node) { return node.is(Kind::Call); });
}

std::vector<Node> calls_to(const SourceFile& file, std::string_view dotted) {
  return calls_where(
      file, [dotted](Node callee) { return callee.text().size() >= dotted.size() && dotted_name(callee) == dotted; });
}

std::vector<Node> calls_of_method(const SourceFile& file, std::string_view method) {
  return calls_where(file, [method](Node callee) { return callee.child(Field::Attribute).text() == method; });
}

std::vector<Node> method_calls_on(Node function, std::string_view name) {
  return own_nodes(function, [name](Node node) {
    if (!node.is(Kind::Call) || !node.child(Field::Function).is(Kind::Attribute)) return false;
    const auto receiver = variable_of(node.child(Field::Function));
    return receiver && receiver->name == name;
  });
}

std::string origin_of(Node node) {
  const std::string dotted = dotted_name(without_parentheses(node));
  if (dotted.empty()) return "";
  const std::string name = dotted.substr(0, dotted.find('.'));
  const SourceFile& file = node.file();
  const Scope* binding = file.scopes().binding(name, file.scopes().of(node));
  if (binding == nullptr) return dotted;
  std::string origin;
  for (const Definition* each : file.definitions().of_name(*binding, name)) {
    if (each->kind != DefinitionKind::Import) return "";
    // `try: import a as x; except ImportError: import b as x`: the first is the one that is meant.
    if (origin.empty()) origin = each->origin;
  }
  return origin.empty() ? "" : origin + dotted.substr(name.size());
}

std::vector<Node> decorators_of(Node definition) {
  std::vector<Node> found;
  const Node around = definition.parent();
  if (!around.is(Kind::DecoratedDefinition)) return found;
  for (const Node child : around.children()) {
    if (child.is(Kind::Decorator)) found.push_back(child.only_child());
  }
  return found;
}

std::vector<Node> bases_of(Node class_definition) {
  std::vector<Node> found;
  for (const Node child : class_definition.child(Field::Superclasses).children()) {
    if (!child.is(Kind::KeywordArgument)) found.push_back(child);
  }
  return found;
}

std::vector<Node> methods_of(Node class_definition) {
  std::vector<Node> found;
  if (!class_definition) return found;
  const Scopes& scopes = class_definition.file().scopes();
  const Scope* own = scopes.made_by(class_definition);
  if (own == nullptr) return found;
  for (const Definition* each : class_definition.file().definitions().in(*own)) {
    if (each->kind == DefinitionKind::Function) found.push_back(each->value);
  }
  return found;
}

Node method_of(Node class_definition, std::string_view name) {
  Node found;  // the last one counts
  for (const Node method : methods_of(class_definition)) {
    if (method.child(Field::Name).text() == name) found = method;
  }
  return found;
}

}  // namespace devsan::program
