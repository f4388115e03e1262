// What the line binds, keeps, hands on or returns, where that becomes the operand.

#include <algorithm>
#include <array>

#include "report/fixes/device_at_hand.h"
#include "report/fixes/device_value.h"
#include "report/fixes/site.h"
#include "report/fixes/tensors.h"
#include "report/fixes/torch_calls.h"
#include "report/program/definitions.h"
#include "report/program/flow.h"
#include "report/program/functions.h"
#include "report/program/literals.h"
#include "report/program/positions.h"
#include "report/program/source_file.h"
#include "report/slice/torch_names.h"

namespace devsan::report::fixes {

using program::CallParts;
using program::Definition;
using program::DefinitionKind;
using program::Field;
using program::Kind;
using program::Node;
using slice::Place;
using slice::Role;

namespace {

bool carries_value(Role role) {
  return slice::binds_value(role) || role == Role::filled || role == Role::registered || role == Role::returned ||
         role == Role::returned_by_hook;
}

// The expression of a place that a tensor comes through.
Node value_at(const Place& place, const Operand& operand) {
  if (place.role != Role::filled && place.role != Role::registered) return place.value;
  const CallParts call = program::call_parts(place.node);
  if (!call || call.has_star || call.has_double_star) return {};
  if (place.role == Role::filled) return call.arguments.empty() ? Node() : call.arguments.back().value;
  const std::string_view called = slice::called_name(call.call);
  if (called == "replace" || called == "_replace") {
    const std::size_t dot = operand.name.rfind('.');
    return call.keyword(std::string_view(operand.name).substr(dot == std::string::npos ? 0 : dot + 1));
  }
  const std::size_t at = called == "setattr" || called == "__setattr__" ? call.positional.size() - 1 : 1;
  return at > 0 && at < call.positional.size() ? call.positional[at] : Node();
}

// The tensors in it: of a choice the one that is there, of a list or comprehension what is collected.
Node tensor_in(Node given, const slice::Code& code) {
  const Node value = program::without_parentheses(given);
  if (value.is(Kind::ConditionalExpression)) {
    const program::ConditionalParts parts = program::conditional_parts(value);
    const bool if_true = is_no_tensor(parts.if_true, code);
    if (if_true != is_no_tensor(parts.if_false, code)) {
      return tensor_in(if_true ? parts.if_false : parts.if_true, code);
    }
    return if_true ? Node() : given;
  }
  if (program::is_comprehension(value)) return tensor_in(program::comprehension_parts(value).element, code);
  if (value.is(Kind::List)) {
    const std::vector<Node> elements = program::elements(value);
    return elements.size() == 1 ? tensor_in(elements.front(), code) : Node();
  }
  if (value.is(Kind::Assignment)) return tensor_in(value.child(Field::Right), code);
  return is_no_tensor(value, code) ? Node() : given;
}

// A name for something that others hold, too.
bool is_alias(Node value) {
  return value.is(Kind::Identifier) || value.is(Kind::Attribute) || value.is(Kind::Subscript);
}

// The value's own call says where it goes, or that of what it is a part of: that is what to change, if it may be.
bool says_where(Node value) {
  const Node node = program::without_parentheses(value);
  if (node.is(Kind::Subscript)) return says_where(node.child(Field::Value));
  const CallParts call = program::call_parts(node);
  if (!call) return false;
  if (is_move(call)) return call.method() != "to" || device_of_move(call);
  const std::string_view argument = device_argument_of(call);
  if (!argument.empty() && call.keyword(argument)) return true;
  return call.receiver() && slice::is_tensor_method(call.method()) && says_where(call.receiver());
}

// Bound to several names at once: which of them is the operand is not told.
bool is_unpacked(const Place& place) {
  if (place.role != Role::bound) return false;
  const Node node = place.node;
  const Node assignment = node.is(Kind::ExpressionStatement) ? node.only_child() : node;
  const Node target = assignment.child(Field::Left);
  const bool several = target.is(Kind::PatternList) || target.is(Kind::TuplePattern) || target.is(Kind::ListPattern);
  return several && place.value == assignment.child(Field::Right);
}

// Functions on the stack have the value by the same name, and take it apart.
bool is_taken_apart(const Site& site, Node value) {
  if (!value.is(Kind::Identifier)) return false;
  return std::ranges::any_of(site.finding.stack, [&](const Frame& frame) {
    const Node function = site.code.function_at(frame);
    return function && is_used_as_other(function, value.text());
  });
}

// The device that the expression brings the name's value to, whole: `x.to(d)`, `place(x, d)`.
Node device_brought_to(Node expression, std::string_view name) {
  const CallParts call = program::call_parts(expression);
  if (!call) return {};
  if (is_move(call)) return call.receiver().text() == name ? device_of_move(call) : Node();
  if (call.positional.size() != 2 || call.positional.front().text() != name) return {};
  const std::string_view second = slice::last_name(call.positional.back());
  return second.find("dev") != std::string_view::npos ? call.positional.back() : Node();
}

// What gets the value is asked for its parts: it is a container.
bool is_kept_for_parts(const Site& site, const Place& place) {
  if (program::is_comprehension(place.value) || place.value.is(Kind::List)) return false;  // its parts are moved
  const Node assignment = place.node.is(Kind::ExpressionStatement) ? place.node.only_child() : place.node;
  const Node target = assignment.is(Kind::Assignment) ? assignment.child(Field::Left) : Node();
  if (target.is(Kind::Identifier)) return is_used_as_other(slice::body_of(target), target.text());
  const std::string_view name = target.is(Kind::Attribute) ? slice::last_name(target) : std::string_view();
  return !name.empty() && site.moved->name.find(std::string(name) + "[") != std::string::npos;
}

// The name by which the function has a moved copy of the value; empty without one.
std::string moved_twin(const Site& site, Node value) {
  const program::SourceFile& file = value.file();
  const program::Scope* scope = file.scopes().made_by(slice::body_of(value));
  if (scope == nullptr) return "";
  for (const Definition* one : file.definitions().in(*scope)) {
    if (one->kind != DefinitionKind::Assignment || !one->is_name() || one->variable.name == value.text()) continue;
    const Node device = one->path.empty() ? device_brought_to(one->value, value.text()) : Node();
    if (!device || one->target.begin_byte() > value.begin_byte()) continue;
    const auto said = device_value(device, site.code);
    if (said && !site.is_there(*said)) continue;
    const auto found = file.flow().reaching(one->variable, value).definitions;
    if (found.size() == 1 && found.front().definition == one) return std::string(one->variable.name);
  }
  return "";
}

bool is_movable(const Operand& operand) {
  return !operand.number && !operand.generator && !operand.device_argument;
}

// The value, and attributes of the same object beside it in a tuple that is assigned: they came the same way.
std::vector<Node> with_attributes_beside(const Site& site, Node value) {
  std::vector<Node> all = {value};
  const Node display = value.parent();
  const bool several = display.is(Kind::ExpressionList) || display.is(Kind::Tuple);
  if (!value.is(Kind::Attribute) || !several || !display.parent().is(Kind::Assignment)) return all;
  for (const Node other : program::elements(display)) {
    const bool alike = other.is(Kind::Attribute) && other != value &&
                       other.child(Field::Object).text() == value.child(Field::Object).text();
    if (alike && !is_no_tensor(other, site.code)) all.push_back(other);
  }
  return all;
}

MaybeChange move_value_at(const Site& site, const Place& place) {
  if (!carries_value(place.role) || place.aspect != slice::Aspect::value || !site.is_on_way(place)) return {};
  if (is_unpacked(place)) return {};
  if (is_taken_apart(site, place.value) || is_kept_for_parts(site, place)) return {};
  const Node value = tensor_in(value_at(place, *site.moved), site.code);
  if (!value || says_where(value) || value.parent().is(Kind::DictionarySplat)) return {};
  if (site.is_written(*site.moved) && is_alias(value)) return {};
  const std::string device = device_at_hand(site, value, value);
  Change change;
  for (const Node one : with_attributes_beside(site, value)) {
    auto edit = device.empty() ? std::nullopt : program::append_to_expression(one, move_to(device));
    if (edit) change.edits.push_back(std::move(*edit));
  }
  if (change.edits.empty()) return {};
  change.text = "Move " + as_code(value.text()) + " to the device: " + as_code(move_to(device));
  return change;
}

// What the line computes, as a step of the operand's history.
MaybeChange move_step(const Site& site) {
  Node outermost;
  for (const Place* place : site.places) {
    const bool computes = place->value.is(Kind::Call) || place->value.is(Kind::BinaryOperator);
    if (place->role == Role::history_derived && computes && (!outermost || place->value.contains(outermost)))
      outermost = place->value;
  }
  // In place, or taken by nobody: the copy would be lost.
  if (!outermost || slice::called_name(outermost).ends_with("_") || outermost.parent().is(Kind::ExpressionStatement)) {
    return {};
  }
  if (outermost.parent().is(Kind::Attribute) || is_no_tensor(outermost, site.code)) return {};
  const std::string device = device_at_hand(site, outermost, outermost);
  const auto edit = program::append_to_expression(outermost, move_to(device));
  if (!edit || device.empty()) return {};
  return Change{{*edit}, "Move " + as_code(outermost.text()) + " to the device: " + as_code(move_to(device))};
}

// The tensor that a `device=` argument is asked of.
MaybeChange move_asked(const Site& site) {
  if (!site.moved->device_argument) return {};
  for (const Place* place : site.places) {
    if (place->role != Role::bound || place->aspect != slice::Aspect::device || place->leads_to_origin == true)
      continue;
    const Node value = device_value(place->value, site.code) ? Node() : tensor_in(place->value, site.code);
    const std::string device = value ? device_at_hand(site, value, value) : "";
    const auto edit = program::append_to_expression(value, move_to(device));
    if (edit && !device.empty() && !says_where(value)) {
      return Change{{*edit}, "Move " + as_code(value.text()) + " to the device: " + as_code(move_to(device))};
    }
  }
  return {};
}

// The call of the statement's function that was running, on the way to the failure.
Node running_call(const Site& site) {
  for (const Frame& frame : site.finding.stack) {
    const Node node = site.code.node_at(frame);
    if (node && slice::body_of(node) == site.candidate.function) return node;
  }
  return {};
}

bool mentions(Node within, std::string_view name) {
  for (const Node node : within.subtree()) {
    if (node.is(Kind::Identifier) && node.text() == name && program::is_variable_name(node)) return true;
  }
  return false;
}

bool is_target(const Site& site, const Definition& definition) {
  const bool bound = definition.kind == DefinitionKind::LoopTarget ||
                     (definition.kind == DefinitionKind::Assignment && !definition.path.empty());
  return bound && definition.is_name() && !is_used_as_other(site.candidate.function, definition.variable.name) &&
         slice::body_of(definition.target) == site.candidate.function;
}

// The name that the statement binds and that becomes the operand; empty where several may.
std::string target_name(const Site& site) {
  std::vector<std::string> names;
  for (const Definition* one : site.file().definitions().at(
           site.statement().is(Kind::ExpressionStatement) ? site.statement().only_child() : site.statement())) {
    if (is_target(site, *one)) names.emplace_back(one->variable.name);
  }
  const bool here = site.failing_function() == site.candidate.function;
  const auto is_operand = [&](const std::string& name) {
    return here && (site.moved->name == name || site.moved->text == name);
  };
  const auto found = std::ranges::find_if(names, is_operand);
  if (found != names.end()) return *found;
  const Node running = running_call(site);
  std::erase_if(names, [&](const std::string& name) { return !running || !mentions(running, name); });
  return names.size() == 1 ? names.front() : "";
}

// Names that the statement binds beside that one, and that another statement hands on together with it: the parts of a
// batch are moved together.
std::vector<std::string> names_beside(const Site& site, const std::string& name) {
  constexpr auto kCount = std::to_array<std::string_view>({"enumerate", "items"});
  const Node loop = site.statement();
  const Node bound = loop.is(Kind::ExpressionStatement) ? loop.only_child() : loop;
  std::vector<std::string> names = {name};
  if (slice::is_one_of(kCount, slice::called_name(bound.child(Field::Right)))) return names;
  for (const Definition* one : site.file().definitions().at(bound)) {
    if (!is_target(site, *one) || one->variable.name == name) continue;
    const auto handed_on_with = [&](Node call) {
      const Node statement = program::statement_of(call);
      return mentions(call.child(Field::Arguments), one->variable.name) && !statement.child(Field::Body) &&
             mentions(statement, name);
    };
    if (std::ranges::any_of(program::calls_in(site.candidate.function), handed_on_with)) {
      names.emplace_back(one->variable.name);
    }
  }
  return names;
}

}  // namespace

MaybeChange take_moved(const Site& site) {
  if (!is_movable(*site.moved)) return {};
  for (const Place* place : site.places) {
    const bool gives = place->role == Role::argument || place->role == Role::bound || place->role == Role::filled;
    const Node value = gives ? value_at(*place, *site.moved) : Node();
    if (!value.is(Kind::Identifier) || !site.is_on_way(*place)) continue;
    const std::string name = moved_twin(site, value);
    const auto edit = name.empty() ? std::nullopt : program::replace_expression(value, name);
    if (edit)
      return Change{{*edit}, "Take " + as_code(name) + ", which is on the device, for " + as_code(value.text())};
  }
  return {};
}

MaybeChange move_value(const Site& site) {
  if (!is_movable(*site.moved)) return move_asked(site);
  for (const Place* place : site.places) {
    if (auto change = move_value_at(site, *place)) return change;
  }
  return move_step(site);
}

MaybeChange move_target(const Site& site) {
  if (!is_movable(*site.moved) || site.is_written(*site.moved)) return {};
  const bool on_way = std::ranges::any_of(site.places, [&](const Place* one) {
    return (one->role == Role::looped_over || one->role == Role::bound) && site.is_on_way(*one);
  });
  const std::string name = on_way ? target_name(site) : "";
  if (name.empty()) return {};
  const Node body = site.statement().is(Kind::ForStatement) ? site.statement().child(Field::Body) : Node();
  const Node first = body && !body.children().empty() ? body.children().front() : Node();
  if (site.statement().is(Kind::ForStatement) && !first) return {};
  const std::string device = device_at_hand(site, first ? first : site.statement(), {});
  if (device.empty() || device == name + ".device") return {};
  const std::string code = moved_names(names_beside(site, name), device);
  const auto edit =
      first ? program::insert_statement_before(first, code) : program::insert_statement_after(site.statement(), code);
  if (!edit) return {};
  return Change{{*edit}, "Move " + as_code(name) + " to the device: " + as_code(code)};
}

}  // namespace devsan::report::fixes
