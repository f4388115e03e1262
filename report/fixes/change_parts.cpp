// Lists and dictionaries of tensors that the line keeps, returns or hands on: what is in them is moved.

#include <algorithm>
#include <array>

#include "report/fixes/device_at_hand.h"
#include "report/fixes/site.h"
#include "report/fixes/tensors.h"
#include "report/program/definitions.h"
#include "report/program/functions.h"
#include "report/program/literals.h"
#include "report/program/positions.h"
#include "report/program/source_file.h"
#include "report/slice/torch_names.h"

namespace devsan::report::fixes {

using program::CallParts;
using program::Field;
using program::Kind;
using program::Node;
using slice::Place;
using slice::Role;

namespace {

enum class Container : std::uint8_t { none, list, dictionary };

bool carries_container(Role role) {
  return slice::binds_value(role) || role == Role::returned || role == Role::returned_by_hook;
}

// A tensor that is taken apart in the line has a step of its history there; a container has none.
bool is_step_at(const Site& site, Node node) {
  return std::ranges::any_of(site.moved->lineage, [&](const LineageStep& step) {
    return step.at.line == node.line() && step.at.file == node.file().path();
  });
}

// What the loop binds is taken apart further: the container holds no tensors.
bool is_target_taken_apart(Node loop) {
  const Node target = loop.child(Field::Left);
  const Node function = slice::body_of(target);
  const auto is_taken_apart = [&](Node node) {
    return node.is(Kind::Identifier) && is_used_as_other(function, node.text());
  };
  const program::Subtree names = target.subtree();
  return std::ranges::any_of(names.begin(), names.end(), is_taken_apart);
}

bool is_loop(Node node) {
  return node.is(Kind::ForStatement) || node.is(Kind::ForInClause);
}

Container looped_over(const Site& site, Node mention) {
  Node at = mention;
  const Node list = at.parent();
  constexpr auto kPassOn = std::to_array<std::string_view>({"zip", "enumerate", "reversed", "list", "tuple"});
  if (list.is(Kind::ArgumentList) && slice::is_one_of(kPassOn, slice::called_name(list.parent()))) at = list.parent();
  const bool loop = is_loop(at.parent()) && at.role() == Field::Right;
  return loop && !is_step_at(site, mention) && !is_target_taken_apart(at.parent()) ? Container::list : Container::none;
}

// What is joined by torch.cat and torch.stack are lists.
bool is_joined(Node mention) {
  constexpr auto kJoins = std::to_array<std::string_view>({"cat", "stack", "concat", "vstack", "hstack", "cat_"});
  const Node list = mention.parent();
  return list.is(Kind::ArgumentList) && list.children().front() == mention &&
         slice::is_one_of(kJoins, slice::called_name(list.parent()));
}

bool is_taken_in_parts(const Site& site, Node mention) {
  const Node parent = mention.parent();
  if (!parent.is(Kind::Assignment) || mention.role() != Field::Right || is_step_at(site, mention)) return false;
  const Node target = parent.child(Field::Left);
  return target.is(Kind::PatternList) || target.is(Kind::TuplePattern) || target.is(Kind::ListPattern);
}

// What the mention of a value says of its type.
Container asked_as(const Site& site, Node mention) {
  const Node parent = mention.parent();
  if (parent.is(Kind::DictionarySplat)) return Container::dictionary;
  if (parent.is(Kind::ListSplat) || is_joined(mention) || is_taken_in_parts(site, mention)) return Container::list;
  if (parent.is(Kind::Attribute) && mention.role() == Field::Object) {
    constexpr auto kOfDictionaries = std::to_array<std::string_view>({"items", "keys", "values"});
    const bool dictionary = slice::is_one_of(kOfDictionaries, slice::last_name(parent));
    return dictionary ? Container::dictionary : Container::none;
  }
  if (parent.is(Kind::Subscript) && mention.role() == Field::Value) {
    const std::vector<Node> keys = parent.children(Field::Subscript);
    if (keys.size() != 1 || parent.role() == Field::Left) return Container::none;
    if (program::is_string(keys.front())) return Container::dictionary;
    const bool single = keys.front().is(Kind::Identifier) || program::integer_value(keys.front());
    return single && !is_step_at(site, mention) ? Container::list : Container::none;
  }
  return looped_over(site, mention);
}

// By all mentions of the name or attribute: one kind, or none.
Container container_of(const Site& site, const std::vector<Node>& mentions, Node own) {
  Container found = Container::none;
  for (const Node mention : mentions) {
    const Container said = mention == own ? Container::none : asked_as(site, mention);
    if (said == Container::none) continue;
    if (found != Container::none && found != said) return Container::none;
    found = said;
  }
  return found;
}

std::vector<Node> mentions_of_name(Node name) {
  const program::SourceFile& file = name.file();
  const program::Scope* binding = file.scopes().binding(name.text(), file.scopes().of(name));
  return binding == nullptr ? std::vector<Node>() : file.definitions().uses(*binding, name.text());
}

// What the place binds the value to; none for others.
Node target_of(const Place& place) {
  const Node node = place.node.is(Kind::ExpressionStatement) ? place.node.only_child() : place.node;
  const bool whole = node.is(Kind::Assignment) && node.child(Field::Right) == place.value;
  return whole ? node.child(Field::Left) : Node();
}

std::vector<Node> mentions_of_target(const Site& site, Node target) {
  if (target.is(Kind::Identifier)) return mentions_of_name(target);
  if (target.is(Kind::Attribute)) return site.code.mentions(slice::last_name(target));
  if (!target.is(Kind::Subscript)) return {};
  std::vector<Node> entries;
  for (const Node container : site.code.mentions(slice::last_name(target.child(Field::Value)))) {
    const bool entry = container.parent().is(Kind::Subscript) && container.role() == Field::Value;
    if (entry && container.parent() != target) entries.push_back(container.parent());
  }
  return entries;
}

Container container_at(const Site& site, const Place& place) {
  const Node target = target_of(place);
  const Container by_target = container_of(site, mentions_of_target(site, target), target);
  if (by_target != Container::none || !place.value.is(Kind::Identifier)) return by_target;
  return container_of(site, mentions_of_name(place.value), place.value);
}

// A name that the value does not have.
std::string free_name(Node value) {
  for (const char* name : {"one", "each", "item"}) {
    const program::Subtree nodes = value.subtree();
    const bool taken = std::ranges::any_of(nodes.begin(), nodes.end(), [&](Node node) { return node.text() == name; });
    if (!taken) return name;
  }
  return "";
}

std::string moved_parts(Container container, Node value, const std::string& device) {
  const std::string one = free_name(value);
  if (one.empty()) return "";
  const std::string text(value.text());
  if (container == Container::list) return "[" + one + move_to(device) + " for " + one + " in " + text + "]";
  return "{key: " + one + move_to(device) + " if torch.is_tensor(" + one + ") else " + one + " for key, " + one +
         " in " + text + ".items()}";
}

// What torch's own functions and a tensor's methods give is a tensor, but for what they take apart or read.
bool gives_tensor(Node value) {
  constexpr auto kGiveSeveral =
      std::to_array<std::string_view>({"load", "split", "chunk", "unbind", "tensor_split", "meshgrid", "state_dict"});
  const CallParts call = program::call_parts(value);
  if (!call || slice::is_one_of(kGiveSeveral, slice::called_name(value))) return false;
  return program::origin_of(call.callee).starts_with("torch.") ||
         (call.receiver() && slice::is_tensor_method(call.method()));
}

bool may_be_container(Node value) {
  const bool source =
      value.is(Kind::Identifier) || value.is(Kind::Attribute) || value.is(Kind::Subscript) || value.is(Kind::Call);
  return source && !gives_tensor(value);
}

}  // namespace

MaybeChange move_parts(const Site& site) {
  const Operand& moved = *site.moved;
  if (moved.number || moved.generator || moved.device_argument || site.is_written(moved)) return {};
  for (const Place* place : site.places) {
    const bool value_of = place->aspect == slice::Aspect::value && site.is_on_way(*place);
    if (!carries_container(place->role) || !value_of || !may_be_container(place->value)) continue;
    const Container container = container_at(site, *place);
    if (container == Container::none) continue;
    if (container == Container::dictionary && !imports(site.file(), "torch")) continue;
    const std::string device = device_at_hand(site, place->value, place->value);
    const std::string code = device.empty() ? "" : moved_parts(container, place->value, device);
    const auto edit = code.empty() ? std::nullopt : program::replace_expression(place->value, code);
    if (edit) return Change{{*edit}, "Move what is in " + as_code(place->value.text()) + ": " + as_code(code)};
  }
  return {};
}

}  // namespace devsan::report::fixes
