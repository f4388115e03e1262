#include "report/program/scopes.h"

#include "report/program/source_file.h"

namespace devsan::program {
namespace {

bool is_comprehension(Kind kind) {
  return kind == Kind::ListComprehension || kind == Kind::SetComprehension || kind == Kind::DictionaryComprehension ||
         kind == Kind::GeneratorExpression;
}

std::string_view own_name(const Scope& scope) {
  switch (scope.kind) {
    case ScopeKind::Module:
      return "<module>";
    case ScopeKind::Lambda:
      return "<lambda>";
    case ScopeKind::Class:
    case ScopeKind::Function:
      return scope.node.child(Field::Name).text();
    case ScopeKind::TypeParameters:
      return "<generic parameters>";
    case ScopeKind::Comprehension:
      break;
  }
  switch (scope.node.kind()) {
    case Kind::ListComprehension:
      return "<listcomp>";
    case Kind::SetComprehension:
      return "<setcomp>";
    case Kind::DictionaryComprehension:
      return "<dictcomp>";
    default:
      return "<genexpr>";
  }
}

// The name and what surrounds it: `b: int = 3`, `*args: T`.
Parameter read_parameter(Node node) {
  Parameter parameter;
  parameter.default_value = node.child(Field::Value);
  parameter.annotation = node.child(Field::Type);
  Node name = node;
  if (const Node named = node.child(Field::Name)) name = named;
  if (node.is(Kind::TypedParameter)) name = node.children().empty() ? Node() : node.children().front();
  if (name.is(Kind::ListSplatPattern) || name.is(Kind::DictionarySplatPattern)) {
    parameter.kind = name.is(Kind::ListSplatPattern) ? ParameterKind::Arguments : ParameterKind::Keywords;
    name = name.only_child();
  }
  parameter.node = name.is(Kind::Identifier) ? name : Node();
  parameter.name = parameter.node.text();
  return parameter;
}

}  // namespace

const Parameter* Scope::parameter(std::string_view name) const {
  for (const Parameter& each : parameters) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

Scopes::Scopes(const SourceFile& file) : file_(file), scope_of_node_(file.size(), Node::kNone) {
  open(ScopeKind::Module, file.root(), Node::kNone);
  scope_of_node_[0] = 0;
  for (std::uint32_t at = 0; at < file.size(); ++at) {
    const Node node = file.node(at);
    if (scope_of_node_[at] == Node::kNone) scope_of_node_[at] = scope_of_node_[node.parent().index()];
    visit(node, scope_of_node_[at]);
  }
}

// A node decides where those below it belong; parents come before their children.
void Scopes::visit(Node node, std::uint32_t scope) {
  switch (node.kind()) {
    case Kind::FunctionDefinition:
    case Kind::Lambda:
      enter_function(node, scope);
      break;
    case Kind::ClassDefinition:
      enter_class(node, scope);
      break;
    case Kind::GlobalStatement:
    case Kind::NonlocalStatement:
      declare(node);
      break;
    default:
      if (is_comprehension(node.kind())) enter_comprehension(node, scope);
  }
}

void Scopes::open(ScopeKind kind, Node node, std::uint32_t parent) {
  Scope& scope = all_[node.index()];
  scope.id = node.index();
  scope.kind = kind;
  scope.node = node;
  scope.parent = parent == Node::kNone ? nullptr : &all_.at(parent);
}

std::uint32_t Scopes::enter_type_parameters(Node node, std::uint32_t outer) {
  const Node parameters = node.child(Field::TypeParameters);
  if (!parameters) return outer;
  open(ScopeKind::TypeParameters, parameters, outer);
  for (const Node child : node.children()) {
    if (child.role() != Field::Name && child.role() != Field::Body) scope_of_node_[child.index()] = parameters.index();
  }
  return parameters.index();
}

void Scopes::enter_function(Node node, std::uint32_t outer) {
  const std::uint32_t around = enter_type_parameters(node, outer);
  open(node.is(Kind::Lambda) ? ScopeKind::Lambda : ScopeKind::Function, node, around);
  read_parameters(node.child(Field::Parameters), all_.at(node.index()));
  if (const Node body = node.child(Field::Body)) scope_of_node_[body.index()] = node.index();
}

void Scopes::enter_class(Node node, std::uint32_t outer) {
  const std::uint32_t around = enter_type_parameters(node, outer);
  open(ScopeKind::Class, node, around);
  if (const Node body = node.child(Field::Body)) scope_of_node_[body.index()] = node.index();
}

void Scopes::enter_comprehension(Node node, std::uint32_t outer) {
  open(ScopeKind::Comprehension, node, outer);
  bool first = true;
  for (const Node child : node.children()) {
    scope_of_node_[child.index()] = node.index();
    if (!child.is(Kind::ForInClause) || !first) continue;
    first = false;
    for (const Node iterable : child.children(Field::Right)) scope_of_node_[iterable.index()] = outer;
  }
}

void Scopes::read_parameters(Node parameters, Scope& scope) {
  bool after_star = false;
  for (const Node child : parameters.children()) {
    if (child.is(Kind::PositionalSeparator)) {
      for (Parameter& before : scope.parameters) before.kind = ParameterKind::PositionalOnly;
      continue;
    }
    after_star = after_star || child.is(Kind::KeywordSeparator);
    Parameter parameter = read_parameter(child);
    if (!parameter.node) continue;
    if (parameter.kind == ParameterKind::Positional && after_star) parameter.kind = ParameterKind::KeywordOnly;
    after_star = after_star || parameter.kind == ParameterKind::Arguments;
    scope_of_node_[parameter.node.index()] = scope.id;
    scope.parameters.push_back(parameter);
  }
}

void Scopes::declare(Node statement) {
  Scope& scope = all_.at(scope_of_node_[statement.index()]);
  for (const Node name : statement.children()) {
    (statement.is(Kind::GlobalStatement) ? scope.globals : scope.nonlocals).insert(name.text());
  }
}

const Scope* Scopes::made_by(Node node) const {
  const auto found = all_.find(node.index());
  return node && found != all_.end() ? &found->second : nullptr;
}

const Scope* Scopes::binding(std::string_view name, const Scope& from) const {
  bool seen_from_class = true;  // the names of a class are seen in its own code alone
  for (const Scope* scope = &from; scope != nullptr; scope = scope->parent) {
    if (scope->globals.contains(name)) return module().names.contains(name) ? &module() : nullptr;
    const bool visible = scope->kind != ScopeKind::Class || seen_from_class;
    if (visible && scope->names.contains(name) && !scope->nonlocals.contains(name)) return scope;
    seen_from_class = scope->kind == ScopeKind::TypeParameters && seen_from_class;
  }
  return nullptr;
}

std::string Scopes::qualified_name(const Scope& scope) const {
  if (scope.kind == ScopeKind::Module) return "<module>";
  std::string name(own_name(scope));
  const Scope* parent = scope.parent;
  // A definition that its scope declares global is named as one of the module.
  const bool defined = scope.kind == ScopeKind::Function || scope.kind == ScopeKind::Class;
  if (defined && parent->globals.contains(own_name(scope))) return name;
  for (; parent->kind != ScopeKind::Module; parent = parent->parent) {
    if (parent->kind == ScopeKind::TypeParameters) continue;
    name = std::string(own_name(*parent)) + (parent->kind == ScopeKind::Class ? "." : ".<locals>.") + name;
  }
  return name;
}

}  // namespace devsan::program
