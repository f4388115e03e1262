#include "report/slice/file_index.h"

#include "report/program/expressions.h"
#include "report/program/positions.h"
#include "report/slice/torch_names.h"

namespace devsan::report::slice {

using program::Definition;
using program::DefinitionKind;
using program::Field;
using program::Kind;
using program::Node;

namespace {

// What `f(…).append(v)` and `d[k].append(v)` add to: the name before calls and subscripts.
Node container_in(Node object) {
  while (object.is(Kind::Subscript) || object.is(Kind::Call)) {
    object = object.is(Kind::Subscript) ? object.child(Field::Value) : object.child(Field::Function);
  }
  if (object.is(Kind::Attribute)) {
    const std::string_view name = object.child(Field::Attribute).text();
    if (name == "setdefault" || name == "get") return object.child(Field::Object);
  }
  return object;
}

}  // namespace

std::string_view last_name(Node expression) {
  if (expression.is(Kind::Identifier)) return expression.text();
  return expression.is(Kind::Attribute) ? expression.child(Field::Attribute).text() : std::string_view();
}

std::string_view called_name(Node call) {
  return call.is(Kind::Call) ? last_name(call.child(Field::Function)) : std::string_view();
}

Node container_of(Node target_or_call) {
  if (target_or_call.is(Kind::Call)) return container_in(target_or_call.child(Field::Function).child(Field::Object));
  return target_or_call.is(Kind::Subscript) ? container_in(target_or_call.child(Field::Value)) : target_or_call;
}

Node body_of(Node node) {
  Node function = program::function_of(node);
  while (program::is_comprehension(function)) function = program::function_of(function);
  return function;
}

std::string_view name_of_function(Node function) {
  if (function.is(Kind::FunctionDefinition)) return function.child(Field::Name).text();
  return function.is(Kind::Lambda) ? "<lambda>" : "<module>";
}

FileIndex::FileIndex(const program::SourceFile& file) : file_(file) {
  for (std::uint32_t index = 0; index < file.size(); ++index) add_node(file.node(index));
  for (const Definition& definition : file.definitions().all()) add_definition(definition);
}

void FileIndex::add_node(Node node) {
  switch (node.kind()) {
    case Kind::Call:
      return add_call(node);
    case Kind::FunctionDefinition:
      functions_[std::string(node.child(Field::Name).text())].push_back(node);
      return;
    case Kind::ClassDefinition:
      classes_[std::string(node.child(Field::Name).text())].push_back(node);
      all_classes_.push_back(node);
      return;
    case Kind::WithStatement:
      withs_.push_back(node);
      return;
    case Kind::Attribute:
      mentions_[std::string(last_name(node))].push_back(node);
      return;
    case Kind::Identifier:
      if (program::is_variable_name(node)) mentions_[std::string(node.text())].push_back(node);
      return;
    default:
      return;
  }
}

void FileIndex::add_call(Node call) {
  const std::string_view name = called_name(call);
  calls_[std::string(name)].push_back(call);
  all_calls_.push_back(call);
  if (registers_member(name)) registrations_.push_back(call);
  const Node callee = call.child(Field::Function);
  if (!fills_container(name) || !callee.is(Kind::Attribute)) return;
  const std::string_view container = last_name(container_of(call));
  if (!container.empty()) fills_[std::string(container)].push_back(call);
}

void FileIndex::add_definition(const Definition& definition) {
  const Node target = definition.target;
  if (definition.kind == DefinitionKind::Declaration || definition.kind == DefinitionKind::Delete) return;
  if (definition.is_attribute_store()) {
    stores_[definition.variable.steps.back().substr(1)].push_back(&definition);
    if (definition.kind == DefinitionKind::Augmented) entries_[std::string(last_name(target))].push_back(&definition);
  } else if (definition.is_subscript_store() && target.is(Kind::Subscript)) {
    const std::string_view container = last_name(container_of(target));
    if (!container.empty()) entries_[std::string(container)].push_back(&definition);
  } else if (definition.is_name() && definition.kind == DefinitionKind::Augmented) {
    entries_[std::string(definition.variable.name)].push_back(&definition);
  } else if (definition.is_name() && definition.kind == DefinitionKind::Assignment && definition.scope != nullptr &&
             definition.scope->kind == program::ScopeKind::Class) {
    stores_[std::string(definition.variable.name)].push_back(&definition);
  }
}

}  // namespace devsan::report::slice
