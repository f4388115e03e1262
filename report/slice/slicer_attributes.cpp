// Attributes: where they are stored, registered, given to a constructor, and what is done to others beside them.

#include <algorithm>

#include "report/program/functions.h"
#include "report/program/literals.h"
#include "report/program/positions.h"
#include "report/slice/slicer.h"
#include "report/slice/torch_names.h"

namespace devsan::report::slice {

using program::Definition;
using program::DefinitionKind;
using program::Field;
using program::Kind;
using program::Node;

namespace {

// Annotated names in the body of a class, in their order: the arguments of a dataclass.
std::vector<std::string_view> annotated_names(Node class_definition) {
  std::vector<std::string_view> found;
  for (const Node statement : class_definition.child(Field::Body).children()) {
    const Node assignment = statement.is(Kind::ExpressionStatement) ? statement.only_child() : Node();
    if (!assignment.is(Kind::Assignment) || !assignment.child(Field::Type)) continue;
    const Node target = assignment.child(Field::Left);
    if (target.is(Kind::Identifier)) found.push_back(target.text());
  }
  return found;
}

bool mentions_attribute_of_self(Node value, std::string_view name) {
  for (const Node node : value.subtree()) {
    if (node.is(Kind::Attribute) && last_name(node) == name && node.child(Field::Object).text() == "self") return true;
  }
  return false;
}

// Classes whose code stores the attribute.
Nodes owners_of(const Definitions& stores) {
  Nodes found;
  for (const Definition* one : stores) {
    const Node owner = program::class_of(one->statement);
    if (owner && std::ranges::find(found, owner) == found.end()) found.push_back(owner);
  }
  return found;
}

// Stores by the code of the classes; all where none of them has one, or no class is known.
Definitions of_family(Definitions stores, const Nodes* family) {
  if (family == nullptr) return stores;
  Definitions own = stores;
  std::erase_if(own, [&](const Definition* one) { return !is_in(one->statement, *family); });
  return own.empty() ? stores : own;
}

// A variable is no attribute, and `self.x` is one of the class around it alone.
bool is_of_others(Node container, const Nodes* family) {
  if (!container.is(Kind::Attribute)) return true;
  const bool own = container.child(Field::Object).text() == "self";
  return own && family != nullptr && !is_in(container, *family);
}

}  // namespace

void Slicer::attribute(Node node, double distance, Aspect aspect) {
  const Node object = node.child(Field::Object);
  const std::string_view name = last_name(node);
  if (aspect != Aspect::device && (name == "shape" || name == "ndim" || name == "dtype")) return;
  const Node owner = code_.class_of_object(object);
  if (!is_tensor_attribute(name)) {
    attribute_named(name, distance, aspect, owner);
    return push(object, distance + 1, aspect == Aspect::value ? Aspect::module : aspect);
  }
  if (name == "device") add(node, Role::device_read, distance, aspect, object);
  push(object, distance + 0.5, aspect);
  if (name == "device" || name == "weight" || name == "bias" || name == "data" || name == "grad") {
    attribute_named(name, distance + 1, aspect, owner);
  }
}

void Slicer::attribute_named(std::string_view name, double distance, Aspect aspect, Node owner) {
  if (!is_nearer("attribute", name, owner, aspect, distance)) return;
  const Nodes* family = owner ? &code_.family_of(owner) : nullptr;
  const Definitions stores = of_family(code_.stores(name), family);
  for (const Definition* one : stores) {
    // What is given to registration functions is looked at there.
    if (one->kind != DefinitionKind::SetAttribute) defined(*one, distance + 0.5, aspect);
  }
  registered(name, distance, aspect, family);
  fields(name, distance, aspect);
  properties(name, distance, aspect, family);
  Definitions entries = code_.entries(name);
  std::erase_if(entries, [&](const Definition* one) { return is_of_others(container_of(one->target), family); });
  entered(entries, distance + 1, aspect);
  Nodes fills = code_.fills(name);
  std::erase_if(fills, [&](Node call) { return is_of_others(container_of(call), family); });
  filled(fills, distance + 1, aspect);
  siblings(name, stores, distance + 1.5, aspect);
  if (aspect == Aspect::module) holders(name, distance + 1.5);
}

void Slicer::registered(std::string_view name, double distance, Aspect aspect, const Nodes* family) {
  for (const FileIndex* index : code_.files()) {
    for (const Node call : index->registrations()) {
      const std::string_view called = called_name(call);
      const bool of_self = call.child(Field::Function).child(Field::Object).text() == "self";
      if (of_self && family != nullptr && !is_in(call, *family)) continue;
      const program::CallParts parts = program::call_parts(call);
      bool named = static_cast<bool>(parts.keyword(name));
      bool literal = false;
      Node value = parts.keyword(name);
      for (const program::Argument& argument : parts.arguments) {
        const auto text = program::string_value(argument.value);
        literal |= text.has_value();
        named |= text && *text == name;
        if (!text && argument.kind == program::Argument::Kind::Positional) value = argument.value;
      }
      const bool computed = !literal && (called == "setattr" || called == "__setattr__");
      if (!named && !computed) continue;
      add(call, Role::registered, distance + 0.5, aspect);
      push(value, distance + 1.5, aspect);
    }
  }
}

void Slicer::fields(std::string_view name, double distance, Aspect aspect) {
  for (const FileIndex* index : code_.files()) {
    for (const Node owner : index->all_classes()) {
      const std::vector<std::string_view> names = annotated_names(owner);
      const auto found = std::ranges::find(names, name);
      if (found == names.end()) continue;
      const auto place = static_cast<std::size_t>(found - names.begin());
      Nodes calls = code_.calls(name_of_class(owner));
      const Nodes own = index->calls("cls");
      calls.insert(calls.end(), own.begin(), own.end());
      for (const Node call : calls) {
        const Node value = program::call_parts(call).argument(name, place);
        add(call, value ? Role::field : Role::argument_left_out, distance + 0.5, aspect, value);
        if (value && value.line() != call.line()) add(value, Role::field, distance + 0.5, aspect);
        push(value, distance + 1.5, aspect);
      }
    }
  }
}

void Slicer::properties(std::string_view name, double distance, Aspect aspect, const Nodes* family) {
  for (const Node function : code_.functions(name)) {
    if (family != nullptr && !is_in(function, *family)) continue;
    if (program::class_of_method(function) && !program::decorators_of(function).empty()) {
      returns(function, distance + 1, aspect);
    }
  }
}

// Moves and new values of other attributes in a class that holds this one.
void Slicer::siblings(std::string_view name, const Definitions& stores, double distance, Aspect aspect) {
  if (aspect == Aspect::device) return;
  const Nodes owners = owners_of(stores);
  if (owners.empty()) return;
  for (const FileIndex* index : code_.files()) {
    for (const std::string_view move : {"to", "cuda", "cpu"}) {
      for (const Node call : index->calls(move)) {
        const Node object = program::call_parts(call).receiver();
        const bool of_self = object.is(Kind::Attribute) && object.child(Field::Object).text() == "self";
        if (of_self && last_name(object) != name && is_in(call, owners)) {
          add(call, Role::sibling_moved, distance, aspect);
        }
      }
    }
    for (const Definition& one : index->file().definitions().all()) {
      if (one.kind != DefinitionKind::Assignment || !one.is_attribute_store() || !is_in(one.statement, owners))
        continue;
      const std::string_view other = last_name(one.target);
      const bool anew = other != name && name_of_function(body_of(one.statement)) != "__init__" &&
                        mentions_attribute_of_self(one.value, other);
      if (anew) add(one.statement, Role::sibling_moved, distance + 0.5, aspect);
    }
  }
}

// Other places that take the same module.
void Slicer::holders(std::string_view name, double distance) {
  for (const Node mention : code_.mentions(name)) {
    const Node parent = mention.parent();
    const bool taken = parent.is(Kind::Assignment) ? mention.role() == Field::Right
                                                   : parent.is(Kind::ExpressionList) || parent.is(Kind::ArgumentList) ||
                                                         parent.is(Kind::KeywordArgument) || parent.is(Kind::List);
    if (mention.is(Kind::Attribute) && taken) add(mention, Role::shared, distance, Aspect::module);
  }
}

}  // namespace devsan::report::slice
