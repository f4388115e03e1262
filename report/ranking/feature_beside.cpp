#include <algorithm>
#include <set>

#include "report/program/expressions.h"
#include "report/program/positions.h"
#include "report/ranking/context.h"
#include "report/slice/slicer.h"
#include "report/slice/torch_names.h"

namespace devsan::report::ranking {

using program::CallParts;
using program::Definition;
using program::Field;
using program::Kind;
using program::Node;
using slice::Place;
using slice::Role;
using slice::Side;

namespace {

std::set<std::string_view> names_in(Node node) {
  std::set<std::string_view> found;
  for (const Node at : node.subtree()) {
    if (at.is(Kind::Identifier)) found.insert(at.text());
  }
  return found;
}

Node target_of(Node statement) {
  const Node inner = statement.is(Kind::ExpressionStatement) ? statement.only_child() : statement;
  return inner.child(Field::Left);
}

// Names in the statement that the function has moved, besides those that the operand comes through.
void set_names(const Context& context, Candidate& candidate) {
  const auto& moved = context.moved_names(candidate.function);
  const std::set<std::string_view> own = candidate.own ? names_in(candidate.own) : std::set<std::string_view>();
  const std::set<std::string_view> targets = names_in(target_of(candidate.statement));
  int beside = 0;
  const bool simple =
      candidate.statement.is(Kind::ExpressionStatement) || candidate.statement.is(Kind::ReturnStatement);
  for (const std::string_view name : simple ? names_in(candidate.statement) : std::set<std::string_view>()) {
    if (!moved.contains(name)) continue;
    if (own.contains(name)) candidate[Feature::own_name_moved] = 1;
    if (!own.contains(name) && !targets.contains(name)) ++beside;
  }
  candidate[Feature::names_moved_beside] = static_cast<float>(std::min(beside, 2));
}

// `y = x.to(device)` in the function: x has a twin that is moved, or is moved itself.
void set_twins(Candidate& candidate) {
  const program::Scope* scope = candidate.file->scopes().made_by(candidate.function);
  if (scope == nullptr) return;
  const std::set<std::string_view> own = names_in(candidate.own ? candidate.own : candidate.statement);
  for (const Definition* one : candidate.file->definitions().in(*scope)) {
    const CallParts call = program::call_parts(one->value);
    if (!call.receiver() || (call.method() != "to" && call.method() != "cuda")) continue;
    const int line = one->statement.line();
    const std::string_view source = slice::last_name(call.receiver());
    if (line == candidate.line || source.empty() || !own.contains(source)) continue;
    if (slice::last_name(one->target) != source) {
      candidate[Feature::has_moved_twin] = 1;
    } else {
      candidate[line > candidate.line ? Feature::moved_later : Feature::moved_before] = 1;
    }
  }
}

// The attribute or container that a place writes.
std::string_view written(const Place& place) {
  if (place.role == Role::filled) {
    Node object = program::call_parts(place.node).receiver();
    if (object.is(Kind::Subscript)) object = object.child(Field::Value);
    return slice::last_name(object);
  }
  Node target = target_of(place.node);
  if (target.is(Kind::Subscript)) return slice::last_name(target.child(Field::Value));
  return target.is(Kind::Attribute) ? slice::last_name(target) : std::string_view();
}

void set_writers(const Context& context, const Place& place, Candidate& candidate) {
  const std::string_view name = written(place);
  if (name.empty()) return;
  bool others = false;
  bool others_move = false;
  const auto add = [&](Node writer) {
    if (writer.line() == candidate.line) return;
    others = true;
    others_move |= traits_of(writer).places();
  };
  for (const Definition* one : context.code.entries(name)) add(one->statement);
  for (const Definition* one : context.code.stores(name)) add(one->statement);
  for (const Node call : context.code.fills(name)) add(call);
  const bool moves = candidate.own_said.places();
  if (others_move && !moves) candidate[Feature::other_writers_move] = 1;
  if (others && !others_move && moves) candidate[Feature::only_writer_moving] = 1;
}

bool is_moved(Node call) {
  return (call.parent().is(Kind::Attribute) && slice::moves(slice::last_name(call.parent()))) ||
         traits_of(call.child(Field::Arguments)).moves;
}

Node call_of(const Place& place) {
  return place.node.is(Kind::Call) ? place.node : place.node.enclosing(Kind::Call);
}

void set_callers(const Context& context, const Place& place, Candidate& candidate) {
  const Node call = call_of(place);
  const std::string_view name = slice::called_name(call);
  if (name.empty() || name == "__init__") return;
  const std::size_t given = program::call_parts(call).arguments.size();
  for (const Node other : context.code.calls(name)) {
    if (other == call) continue;
    if (program::call_parts(other).arguments.size() > given) candidate[Feature::other_callers_give_more] = 1;
    if (is_moved(other) && !is_moved(call)) candidate[Feature::other_callers_move] = 1;
    if (traits_of(other).speaks_of_device && !traits_of(call).speaks_of_device) {
      candidate[Feature::other_callers_give_device] = 1;
    }
  }
}

bool makes_with_device(Node scope) {
  for (const Node at : scope.subtree()) {
    if (at.is(Kind::Call) && slice::makes_tensor(slice::called_name(at)) && traits_of(at).speaks_of_device) return true;
  }
  return false;
}

void set_makers(const Place& place, Candidate& candidate) {
  const Node function = slice::body_of(place.node);
  const Node owner = program::class_of(place.node);
  if (function.is(Kind::FunctionDefinition) && makes_with_device(function)) {
    candidate[Feature::function_makes_with_device] = 1;
  }
  if (owner && makes_with_device(owner)) candidate[Feature::class_makes_with_device] = 1;
}

void set_arguments(const Context& context, const Place& place, Candidate& candidate) {
  const auto& moved = context.moved_names(candidate.function);
  const auto is_moved_value = [&](Node value) {
    return traits_of(value).places() || (value.is(Kind::Identifier) && moved.contains(value.text()));
  };
  if (is_moved_value(place.value)) return;
  const CallParts call = program::call_parts(call_of(place));
  const bool others = std::ranges::any_of(call.arguments, [&](const program::Argument& argument) {
    return argument.value != place.value && is_moved_value(argument.value);
  });
  if (others) candidate[Feature::other_arguments_moved] = 1;
}

bool writes(Role role) {
  return role == Role::stored || role == Role::entered || role == Role::filled || role == Role::bound;
}

bool calls(Role role) {
  return role == Role::called || role == Role::argument_left_out || role == Role::argument || role == Role::constructed;
}

}  // namespace

void set_beside(const Context& context, Candidate& candidate) {
  set_names(context, candidate);
  set_twins(candidate);
  bool binds = false;
  bool empty = true;
  for (const Place* place : candidate.places) {
    if (place->aspect == slice::Aspect::device || place->side == Side::program) continue;
    if (place->side == Side::odd && writes(place->role)) set_writers(context, *place, candidate);
    if (calls(place->role)) set_callers(context, *place, candidate);
    if (place->role == Role::made || place->role == Role::constructed || place->role == Role::registered) {
      set_makers(*place, candidate);
    }
    if (place->role == Role::argument) set_arguments(context, *place, candidate);
    if (place->role == Role::bound || place->role == Role::stored) {
      binds = true;
      empty &= slice::is_empty_value(place->value);
    }
  }
  candidate[Feature::stored_empty] = binds && empty ? 1 : 0;
}

}  // namespace devsan::report::ranking
