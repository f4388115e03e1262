// Where the operand is made: the device is given there.

#include <algorithm>

#include "report/fixes/device_at_hand.h"
#include "report/fixes/device_value.h"
#include "report/fixes/site.h"
#include "report/fixes/torch_calls.h"
#include "report/program/functions.h"
#include "report/slice/torch_names.h"

namespace devsan::report::fixes {

using program::CallParts;
using program::Edit;
using program::Node;
using slice::Place;
using slice::Role;

namespace {

bool is_maker(Role role) {
  switch (role) {
    case Role::made:
    case Role::made_alike:
    case Role::made_where_told:
    case Role::made_where_written:
    case Role::registered:
    case Role::history_created:
      return true;
    default:
      return false;
  }
}

// What the call makes is moved before anything else is done with it.
bool is_moved_on(Node call) {
  for (Node at = call; at.parent().is(program::Kind::Attribute); at = at.parent().parent()) {
    const CallParts next = program::call_parts(at.parent().parent());
    if (next.receiver() != at) return false;
    if (is_move(next) && (next.method() != "to" || device_of_move(next))) return true;
  }
  return false;
}

// The device of what is made was asked of it.
bool says_device_of_others(const Site& site, Node call) {
  return std::ranges::any_of(site.places, [&](const Place* one) {
    return one->aspect == slice::Aspect::device && one->value == call && one->side != slice::Side::program;
  });
}

// A wrapper of what another call of the line makes.
bool is_wrapper(const Site& site, const CallParts& call) {
  if (!slice::wraps_tensor(slice::called_name(call.call))) return false;
  return std::ranges::any_of(site.places, [&](const Place* one) {
    return is_maker(one->role) && one->node != call.call && call.call.contains(one->node);
  });
}

// Calls of the line that make what becomes the operand, the step of its history first.
std::vector<CallParts> makers_of(const Site& site) {
  std::vector<CallParts> found;
  for (const Place* place : site.places) {
    if (!is_maker(place->role) || place->side == slice::Side::program) continue;
    const CallParts call = program::call_parts(program::without_parentheses(place->node));
    const bool maker =
        call && (slice::makes_tensor(slice::called_name(call.call)) || !device_argument_of(call).empty());
    if (!maker || is_moved_on(call.call)) continue;
    if (place->leads_to_origin == false && !says_device_of_others(site, call.call)) continue;
    if (is_wrapper(site, call)) continue;
    const bool known = std::ranges::any_of(found, [&](const CallParts& one) { return one.call == call.call; });
    if (!known) found.push_back(call);
  }
  return found;
}

Node given_device(const CallParts& call, std::string_view argument) {
  if (argument == "map_location") return call.argument(argument, 1);
  return call.callee.text().ends_with("Generator") ? call.argument(argument, 0) : call.keyword(argument);
}

// What else decides the device: of a tensor made like another, or of one's numbers.
Node source_of(const CallParts& call) {
  if (call.method().starts_with("new_")) return call.receiver();
  const bool takes = makes_like_another(call) || slice::makes_from_argument(slice::called_name(call.call));
  return takes && !call.positional.empty() ? call.positional.front() : Node();
}

bool may_change(const Site& site, Node given) {
  const auto said = device_value(given, site.code);
  if (said) return !site.is_there(*said);
  // It follows a variable, which others follow, too: that is what to change, but where the devices meet.
  return slice::body_of(given) == site.failing_function();
}

// What holds it beside others: a tuple, the arguments of a call, a dictionary.
Node display_of(Node node) {
  const Node parent = node.parent();
  const bool named = parent.is(program::Kind::Pair) || parent.is(program::Kind::KeywordArgument);
  return named ? parent.parent() : parent;
}

// The attribute of self that the call's value, or a parameter made of it, is stored in; none for others.
Node attribute_of(Node call) {
  Node at = call.parent();
  while (at.is(program::Kind::ArgumentList) || at.is(program::Kind::Call)) at = at.parent();
  const Node target = at.is(program::Kind::Assignment) ? at.child(program::Field::Left) : Node();
  const bool own = target.is(program::Kind::Attribute) && target.child(program::Field::Object).text() == "self";
  return own ? target : Node();
}

std::string_view wrapper_of(Node call) {
  const Node parent = call.parent().is(program::Kind::ArgumentList) ? call.parent().parent() : Node();
  return slice::called_name(parent);
}

// Made beside it without a device, as it is: in the same display, or as another attribute by the same constructor.
std::vector<CallParts> twins_of(const CallParts& call) {
  std::vector<CallParts> twins;
  const Node attribute = attribute_of(call.call);
  for (const Node other : program::calls_in(slice::body_of(call.call))) {
    const CallParts parts = program::call_parts(other);
    if (other == call.call || device_argument_of(parts) != "device" || parts.keyword("device")) continue;
    if (makes_like_another(parts) || is_moved_on(other)) continue;
    const bool beside = display_of(other) == display_of(call.call);
    const bool stored = attribute && attribute_of(other) && wrapper_of(other) == wrapper_of(call.call);
    if (beside || stored) twins.push_back(parts);
  }
  return twins;
}

struct Given {
  Edit edit;
  std::string text;
};

std::optional<Given> give(const Site& site, const CallParts& call) {
  const std::string_view argument = device_argument_of(call);
  const std::string name(call.callee.text());
  if (argument.empty() || call.keyword("generator")) {
    const Node value = slice::wraps_tensor(slice::called_name(call.call))
                           ? (call.positional.empty() ? Node() : call.positional.front())
                           : call.call;
    const std::string device = device_at_hand(site, call.call, value);
    const auto edit = program::append_to_expression(value, move_to(device));
    if (!edit || device.empty() || site.away || call.keyword("generator")) return std::nullopt;
    return Given{*edit, "Move the result of " + as_code(name) + ": " + as_code(move_to(device))};
  }
  const Node given = given_device(call, argument);
  if (given && !may_change(site, given)) return std::nullopt;
  const std::string device = device_at_hand(site, call.call, source_of(call), given.text());
  // A variable stands for more than the one device.
  if (site.away && device.starts_with('\'')) return std::nullopt;
  const bool to_one = argument == "device" && given && !says_device(given) && device.starts_with('\'');
  if (device.empty() || to_one) return std::nullopt;
  const auto edit = given && given.role() != program::Field::Value ? program::replace_expression(given, device)
                                                                   : program::set_keyword(call.call, argument, device);
  if (!edit) return std::nullopt;
  return Given{*edit, "Give " + as_code(name) + " the device: " + as_code(std::string(argument) + "=" + device)};
}

bool overlaps(const Edit& one, const Edit& other) {
  return one.begin < other.end && other.begin < one.end;
}

}  // namespace

MaybeChange give_device(const Site& site) {
  std::vector<CallParts> makers = makers_of(site);
  if (makers.empty()) return {};
  if (!makers.front().keyword("device")) {
    for (const CallParts& twin : twins_of(makers.front())) {
      const bool known = std::ranges::any_of(makers, [&](const CallParts& one) { return one.call == twin.call; });
      if (!known) makers.push_back(twin);
    }
  }
  Change change;
  std::vector<Node> done;
  for (const CallParts& call : makers) {
    const bool nested =
        std::ranges::any_of(done, [&](Node one) { return one.contains(call.call) || call.call.contains(one); });
    const auto given = nested ? std::nullopt : give(site, call);
    if (!given) continue;
    const bool clash = std::ranges::any_of(change.edits, [&](const Edit& one) { return overlaps(one, given->edit); });
    if (clash) continue;
    done.push_back(call.call);
    if (change.text.empty()) change.text = given->text;
    change.edits.push_back(given->edit);
  }
  return change.edits.empty() ? MaybeChange() : change;
}

}  // namespace devsan::report::fixes
