// Calls that leave a device out, and keys of caches that do.

#include <algorithm>

#include "report/fixes/device_at_hand.h"
#include "report/fixes/device_value.h"
#include "report/fixes/site.h"
#include "report/fixes/tensors.h"
#include "report/program/definitions.h"
#include "report/program/functions.h"
#include "report/program/positions.h"
#include "report/program/source_file.h"

namespace devsan::report::fixes {

using program::CallParts;
using program::Field;
using program::Kind;
using program::Node;
using program::ParameterKind;
using slice::Place;
using slice::Role;

namespace {

bool is_name_of_device(std::string_view name) {
  return name == "device" || name == "dev" || name.ends_with("_device") || name == "map_location";
}

bool is_given_as_device(Node function, std::string_view name) {
  return std::ranges::any_of(program::calls_in(function), [&](Node call) {
    const Node given = program::call_parts(call).keyword("device");
    return given && given.text() == name;
  });
}

// The parameter of the function that is a device, and that the call gives nothing.
std::string_view device_left_out(const CallParts& call, Node function) {
  const program::Scope* scope = function.file().scopes().made_by(function);
  if (scope == nullptr) return "";
  std::size_t place = 0;
  for (const program::Parameter& one : scope->parameters) {
    if (program::class_of_method(function) && &one == &scope->parameters.front()) continue;
    const bool device = is_name_of_device(one.name) || is_given_as_device(function, one.name);
    const bool nameable = one.kind == ParameterKind::Positional || one.kind == ParameterKind::KeywordOnly;
    const Node given = one.kind == ParameterKind::KeywordOnly ? call.keyword(one.name) : call.argument(one.name, place);
    if (device && nameable && !given) return one.name;
    ++place;
  }
  return "";
}

// Of the class, or else of the nearest that it is derived from.
Node constructor_of(const Site& site, Node class_definition) {
  slice::Nodes open = {class_definition};
  constexpr std::size_t kMost = 16;
  for (std::size_t k = 0; k < open.size() && k < kMost; ++k) {
    if (const Node constructor = program::method_of(open[k], "__init__")) return constructor;
    for (const Node base : program::bases_of(open[k])) {
      for (const Node known : site.code.classes(slice::last_name(base))) open.push_back(known);
    }
  }
  return {};
}

slice::Nodes functions_of(const Site& site, const CallParts& call) {
  const std::string_view called = slice::called_name(call.call);
  slice::Nodes functions = site.code.functions(called);
  for (const Node one : site.code.classes(called)) {
    if (const Node constructor = constructor_of(site, one)) functions.push_back(constructor);
  }
  return functions;
}

// The keyword for the call, and for those that are made beside it in a list or dictionary and leave it out as well.
std::vector<program::Edit> given_to_all(const Site& site, const CallParts& call, std::string_view name,
                                        const std::string& device) {
  const auto display_of = [](Node node) {
    return node.parent().is(Kind::Pair) ? node.parent().parent() : node.parent();
  };
  const Node display = display_of(call.call);
  const bool several = display.is(Kind::Dictionary) || display.is(Kind::List) || display.is(Kind::Tuple);
  std::vector<program::Edit> edits;
  for (const Node other : several ? program::elements(display) : std::vector<Node>{call.call}) {
    const CallParts parts = program::call_parts(other);
    const slice::Nodes functions = parts ? functions_of(site, parts) : slice::Nodes();
    const bool alike = std::ranges::any_of(functions, [&](Node one) { return device_left_out(parts, one) == name; });
    auto edit = alike ? program::set_keyword(other, name, device) : std::nullopt;
    if (edit) edits.push_back(std::move(*edit));
  }
  return edits;
}

bool leaves_out(Role role) {
  return role == Role::argument_left_out || role == Role::called || role == Role::constructed ||
         role == Role::history_called;
}

// Something that says the device of what the function is called with.
std::string device_of_call(Node key) {
  const Node function = slice::body_of(key);
  const program::Scope* scope = function.file().scopes().made_by(function);
  if (scope == nullptr || !scope->is_function()) return "";
  const std::string written(key.text());
  for (const program::Parameter& one : scope->parameters) {
    const std::string name(one.name);
    if (is_name_of_device(name) && written.find(name) == std::string::npos) return name;
  }
  for (const program::Parameter& one : scope->parameters) {
    if (one.name == "self" || one.name == "cls") continue;
    const std::string device = std::string(one.name) + ".device";
    const bool tensor = is_used_as_tensor(function, one.name) && !is_used_as_other(function, one.name);
    const bool speaks = key.file().root().text().find(device) != std::string_view::npos;
    if ((tensor || speaks) && written.find(device) == std::string::npos) return device;
  }
  return "";
}

// The name is used to look something up.
bool is_key(Node name) {
  const Node function = slice::body_of(name);
  for (const Node node : function.subtree()) {
    if (!node.is(Kind::Identifier) || node.text() != name.text()) continue;
    const Node parent = node.parent();
    if (parent.is(Kind::Subscript) && node.role() == Field::Subscript) return true;
  }
  return false;
}

}  // namespace

MaybeChange give_argument(const Site& site) {
  for (const Place* place : site.places) {
    const CallParts call = program::call_parts(program::without_parentheses(place->node));
    if (!leaves_out(place->role) || !call || call.has_star || call.has_double_star) continue;
    if (place->leads_to_origin == false && place->aspect != slice::Aspect::device) continue;
    for (const Node function : functions_of(site, call)) {
      const std::string_view name = device_left_out(call, function);
      if (name.empty()) continue;
      const std::string device = device_at_hand(site, call.call);
      auto edits = device.empty() ? std::vector<program::Edit>() : given_to_all(site, call, name, device);
      if (edits.empty()) continue;
      return Change{std::move(edits), "Give " + as_code(call.callee.text()) +
                                          " the device: " + as_code(std::string(name) + "=" + device)};
    }
  }
  return {};
}

MaybeChange extend_key(const Site& site) {
  const Node assignment = site.statement().is(Kind::ExpressionStatement) ? site.statement().only_child() : Node();
  if (!assignment.is(Kind::Assignment) || !site.has(Role::guard_set)) return {};
  const Node target = assignment.child(Field::Left);
  const Node key = program::without_parentheses(assignment.child(Field::Right));
  if (!target.is(Kind::Identifier) || !is_key(target)) return {};
  const bool tuple = key.is(Kind::Tuple) || key.is(Kind::ExpressionList);
  const std::string device = device_of_call(key);
  if (device.empty() || program::elements(key).empty() != !tuple) return {};
  const program::Edit edit =
      tuple ? program::Edit{program::elements(key).back().end_byte(), program::elements(key).back().end_byte(),
                            ", " + device}
            : program::Edit{key.begin_byte(), key.end_byte(), "(" + std::string(key.text()) + ", " + device + ")"};
  return Change{{edit}, "Tell the devices apart in the key: " + as_code(device)};
}

}  // namespace devsan::report::fixes
