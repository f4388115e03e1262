// Objects: where those of a class are made, moved, and kept.

#include <algorithm>

#include "report/program/functions.h"
#include "report/program/positions.h"
#include "report/slice/slicer.h"
#include "report/slice/torch_names.h"

namespace devsan::report::slice {

using program::Field;
using program::Kind;
using program::Node;

namespace {

constexpr double kFarthestFactory = 6;
constexpr std::size_t kMostObjects = 4;

bool hands_on(Node node) {
  switch (node.kind()) {
    case Kind::Attribute:
    case Kind::Call:
    case Kind::ArgumentList:
    case Kind::ParenthesizedExpression:
    case Kind::KeywordArgument:
    case Kind::List:
    case Kind::Tuple:
    case Kind::ListComprehension:
    case Kind::GeneratorExpression:
    case Kind::ExpressionList:
      return true;
    default:
      return false;
  }
}

}  // namespace

// The object whose method the function is: what it was called on, and where such objects are made.
void Slicer::object_of_method(Node function, double distance) {
  const std::string_view name = name_of_function(function);
  std::size_t count = 0;
  for (const auto& [call, ran] : callers_of(function)) {
    if (count++ == kMostObjects) break;
    const program::CallParts parts = program::call_parts(call);
    if (name == "__init__") {
      push(call, distance + 1, Aspect::module);
    } else {
      push(parts.method() == name ? parts.receiver() : parts.callee, distance + 1, Aspect::module);
    }
  }
}

void Slicer::made_objects(Node class_definition, double distance, Aspect aspect) {
  if (!class_definition || aspect == Aspect::device) return;
  const std::string_view name = name_of_class(class_definition);
  if (!is_nearer("objects", name, {}, Aspect::module, distance)) return;
  for (const Node call : code_.calls(name)) object_at(call, distance + 1);
}

void Slicer::object_at(Node call, double distance) {
  if (distance > kFarthest || !is_nearer("object", "", call, Aspect::module, distance)) return;
  add(call, Role::constructed, distance, Aspect::module);
  for (Node at = call.parent(); at && hands_on(at); at = at.parent()) {
    if (!at.is(Kind::Call) || !moves(called_name(at))) continue;
    add(at, Role::object_moved, distance, Aspect::module);
    device_arguments(program::call_parts(at), distance);
  }
  Node binding = call.parent();
  while (binding && !program::is_statement(binding) && !binding.is(Kind::Assignment) &&
         !binding.is(Kind::NamedExpression)) {
    binding = binding.parent();
  }
  for (const program::Definition* one : call.file().definitions().at(binding)) object_kept_as(one->target, distance);
  // The class that it is a part of, or the function that makes it for its callers.
  const Node function = body_of(call);
  if (!function.is(Kind::FunctionDefinition)) return;
  if (const Node owner = program::class_of_method(function)) return made_objects(owner, distance + 1, Aspect::module);
  for (const Node caller : code_.calls(name_of_function(function))) {
    add(caller, Role::called, distance + 1, Aspect::module);
    if (distance < kFarthestFactory) object_at(caller, distance + 1);
  }
}

// Moves of the object by the variable or attribute that it is kept in, and who takes it from there.
void Slicer::object_kept_as(Node target, double distance) {
  const std::string_view name = last_name(target);
  if (name.empty()) return;
  if (target.is(Kind::Attribute)) attribute_named(name, distance + 1, Aspect::module);
  const bool fresh = is_nearer("kept", name, {}, Aspect::module, distance);
  for (const Node mention : code_.mentions(name)) {
    const Node parent = mention.parent();
    if (parent.is(Kind::Attribute) && mention.role() == Field::Object && parent.role() == Field::Function) {
      const Node call = parent.parent();
      if (!moves(last_name(parent))) continue;
      add(call, Role::object_moved, distance + 0.5, Aspect::module);
      device_arguments(program::call_parts(call), distance + 0.5);
    } else if (fresh && (parent.is(Kind::ArgumentList) || parent.is(Kind::KeywordArgument))) {
      add(mention.enclosing(Kind::Call), Role::shared, distance + 1, Aspect::module);
    }
  }
}

}  // namespace devsan::report::slice
