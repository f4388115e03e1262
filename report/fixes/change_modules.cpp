// Modules: what moves with them, and where they are made.

#include <algorithm>
#include <array>

#include "report/fixes/device_at_hand.h"
#include "report/fixes/site.h"
#include "report/fixes/tensors.h"
#include "report/fixes/torch_calls.h"
#include "report/program/definitions.h"
#include "report/program/flow.h"
#include "report/program/functions.h"
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

constexpr int kDeepestModule = 4;  // modules in modules

bool is_moved(const Site& site, Node class_definition, int depth);

// The object goes where a module that is moved goes.
bool is_made_in_moved(const Site& site, Node class_definition, int depth) {
  if (depth == kDeepestModule) return false;
  for (const Node call : site.code.calls(slice::name_of_class(class_definition))) {
    const Node outer = program::class_of(call);
    if (outer && outer != class_definition && is_moved(site, outer, depth + 1)) return true;
  }
  return false;
}

bool is_moved(const Site& site, Node class_definition, int depth) {
  for (const std::string_view move : {"to", "cuda", "cpu"}) {
    for (const Node call : site.code.calls(move)) {
      if (site.code.may_be_object_of(program::call_parts(call).receiver(), class_definition)) return true;
    }
  }
  return is_made_in_moved(site, class_definition, depth);
}

// Parameters of the same object are where the operand is to be.
bool is_beside_parameters(const Site& site) {
  const Operand* other = site.wanted;
  const bool part =
      other != nullptr && (other->is == trace::NameKind::parameter || other->is == trace::NameKind::buffer);
  return part && other->name.starts_with("self.") && site.moved->name.starts_with("self.") &&
         program::class_of(site.failing_statement()) == program::class_of(site.statement());
}

bool is_part(const Operand& operand) {
  return operand.is == trace::NameKind::parameter || operand.is == trace::NameKind::buffer;
}

// Behind a docstring and what is imported from the future.
Node first_import(const program::SourceFile& file) {
  for (const Node statement : file.root().children()) {
    if (statement.is(Kind::ImportStatement) || statement.is(Kind::ImportFromStatement)) return statement;
  }
  return {};
}

// A part can be registered here: in the constructor behind super().__init__(), and nothing has the name before.
bool may_register(const Site& site, Node target) {
  const Node function = slice::body_of(target);
  const Node owner = program::class_of_method(function);
  if (!owner || slice::name_of_function(function) != "__init__" || !is_derived_from_module(owner, site.code))
    return false;
  bool initialized = false;
  for (const Node call : program::calls_in(function)) {
    const bool super = slice::called_name(call) == "__init__" && call.begin_byte() < target.begin_byte();
    initialized = initialized || super;
  }
  const auto stores = site.code.stores(slice::last_name(target));
  return initialized && std::ranges::none_of(stores, [&](const program::Definition* one) {
           const bool class_level = one->is_name();
           const bool earlier = slice::body_of(one->statement) == function && one->target != target;
           return program::class_of(one->statement) == owner && (class_level || earlier);
         });
}

// The constructor keeps the module as an attribute, or in one that is a module: so it is moved with the object.
bool is_registered(Node made) {
  if (slice::name_of_function(slice::body_of(made)) != "__init__") return false;
  Node at = made.parent();
  while (at.is(Kind::ArgumentList) || at.is(Kind::Call)) at = at.parent();
  const Node target = at.is(Kind::Assignment) ? at.child(Field::Left) : Node();
  return target.is(Kind::Attribute) && target.child(Field::Object).text() == "self";
}

bool gives_module(const Site& site, Node value, int depth);

// The function returns a module that it makes.
bool returns_module(const Site& site, Node function, int depth) {
  const program::Returns returns = program::returns_of(function);
  return !returns.values.empty() && returns.yielded.empty() &&
         std::ranges::all_of(returns.values, [&](Node value) { return gives_module(site, value, depth + 1); });
}

// The call ran the constructor of a module, whatever it names.
bool ran_constructor(const Site& site, Node call) {
  return std::ranges::any_of(site.code.functions("__init__"), [&](Node constructor) {
    const Node owner = program::class_of_method(constructor);
    const slice::Nodes& ran = site.code.calls_that_ran(constructor);
    return owner && is_derived_from_module(owner, site.code) && std::ranges::find(ran, call) != ran.end();
  });
}

bool gives_module(const Site& site, Node given, int depth) {
  const Node value = program::awaited(given);
  if (depth > kDeepestModule || !value) return false;
  if (value.is(Kind::Identifier)) {
    const auto found = value.file().flow().reaching(value).definitions;
    return !found.empty() && std::ranges::all_of(found, [&](const program::Reached& one) {
      const program::Definition& definition = *one.definition;
      const bool plain = definition.kind == program::DefinitionKind::Assignment && definition.path.empty();
      return plain && gives_module(site, definition.value, depth + 1);
    });
  }
  const CallParts call = program::call_parts(value);
  // super().__init__() gives nothing.
  if (!call || slice::called_name(value) == "__init__") return false;
  if (makes_layer(call) || ran_constructor(site, value)) return true;
  const std::string_view called = slice::called_name(value);
  const auto is_module = [&](Node one) { return is_derived_from_module(one, site.code); };
  if (std::ranges::any_of(site.code.classes(called), is_module)) return true;
  constexpr auto kGiveItself = std::to_array<std::string_view>({"eval", "train", "requires_grad_", "float", "half"});
  if (call.receiver() && slice::is_one_of(kGiveItself, called)) return gives_module(site, call.receiver(), depth + 1);
  const slice::Nodes functions = site.code.functions(called);
  return !functions.empty() && std::ranges::all_of(functions, [&](Node one) {
    return static_cast<bool>(program::class_of_method(one)) == static_cast<bool>(call.receiver()) &&
           returns_module(site, one, depth);
  });
}

// The call itself, or, where only the line of it is known, what that assigns or returns.
Node call_of(Node node) {
  const Node inner = node.is(Kind::ExpressionStatement) || node.is(Kind::ReturnStatement) ? node.only_child() : node;
  return inner.is(Kind::Assignment) ? inner.child(Field::Right) : inner;
}

// What the place says that a module may come through.
Node module_at(const Site& site, const Place& place) {
  switch (place.role) {
    case Role::constructed:
      return place.node;
    case Role::called:
    case Role::argument_left_out:
      return is_part(*site.moved) ? place.node : Node();
    case Role::history_called:
      return is_part(*site.moved) ? call_of(place.node) : Node();
    default:
      return is_part(*site.moved) && slice::binds_value(place.role) ? place.value : Node();
  }
}

// The outermost call on the line that makes a module; what it holds is moved with it.
Node outermost_module(const Site& site) {
  Node found;
  for (const Place* place : site.places) {
    if (place->leads_to_origin == false || place->side == slice::Side::program) continue;
    const Node made = program::without_parentheses(module_at(site, *place));
    if (made.is(Kind::Call) && gives_module(site, made, 0) && (!found || made.contains(found))) found = made;
  }
  return found;
}

// Made beside it by the same function, in lines of their own, of the same class of layer.
std::vector<Node> layers_beside(Node made) {
  std::vector<Node> layers = {made};
  const CallParts own = program::call_parts(made);
  if (!makes_layer(own) || !made.parent().is(Kind::Assignment)) return layers;
  for (const Node other : program::calls_in(slice::body_of(made))) {
    const bool alike = other != made && program::call_parts(other).callee.text() == own.callee.text();
    if (alike && other.parent().is(Kind::Assignment)) layers.push_back(other);
  }
  return layers;
}

}  // namespace

MaybeChange register_buffer(const Site& site) {
  const Node assignment = site.statement().is(Kind::ExpressionStatement) ? site.statement().only_child() : Node();
  if (!assignment.is(Kind::Assignment) || assignment.child(Field::Type)) return {};
  const Node target = assignment.child(Field::Left);
  const Node value = assignment.child(Field::Right);
  const bool stored = std::ranges::any_of(
      site.places, [&](const Place* one) { return one->role == Role::stored && site.is_on_way(*one); });
  if (!stored || !target.is(Kind::Attribute) || target.child(Field::Object).text() != "self") return {};
  if (slice::wraps_tensor(slice::called_name(value))) return {};
  if (value.is(Kind::Assignment) || is_no_tensor(value, site.code)) return {};
  const bool itself = site.moved->name == target.text() || site.moved->text == target.text();
  if (!itself || !may_register(site, target)) return {};
  if (!is_beside_parameters(site) && !is_moved(site, program::class_of(target), 0)) return {};
  const std::string name(slice::last_name(target));
  const std::string code = "self.register_buffer('" + name + "', " + std::string(value.text()) + ", persistent=False)";
  return Change{{program::Edit{assignment.begin_byte(), assignment.end_byte(), code}},
                "Register " + as_code(target.text()) + " as a buffer, so that it moves with the module"};
}

MaybeChange copy_object(const Site& site) {
  const Node assignment = site.statement().is(Kind::ExpressionStatement) ? site.statement().only_child() : Node();
  const Node target = assignment.child(Field::Left);
  const Node value = assignment.child(Field::Right);
  const Node owner = program::class_of_method(site.candidate.function);
  if (!assignment.is(Kind::Assignment) || !is_part(*site.moved) || !target.is(Kind::Attribute) || !owner) return {};
  if (!value.is(Kind::Attribute) && !value.is(Kind::Subscript)) return {};
  const bool stored = std::ranges::any_of(site.places, [&](const Place* one) {
    return one->role == Role::stored && one->aspect == slice::Aspect::module && one->leads_to_origin != false;
  });
  // Of another object, which goes its own ways; this one's own parts are no copies.
  if (!stored || target.child(Field::Object).text() != "self" || program::root_of(value).text() == "self") return {};
  if (!is_derived_from_module(owner, site.code) || !is_moved(site, owner, 0)) return {};
  const auto edit = program::wrap_in_call(value, "copy.deepcopy");
  if (!edit) return {};
  Change change{{*edit}, "Give " + as_code(target.text()) + " a copy of its own: " + as_code(edit->text)};
  if (!imports(site.file(), "copy")) {
    const Node first = first_import(site.file());
    const auto import = first ? program::insert_statement_before(first, "import copy") : std::nullopt;
    if (!import) return {};
    change.edits.push_back(*import);
  }
  return change;
}

MaybeChange move_object(const Site& site) {
  const Node made = outermost_module(site);
  if (!made) return {};
  const Node parent = made.parent();
  const CallParts around = parent.is(Kind::Attribute) ? program::call_parts(parent.parent()) : CallParts();
  if (around && is_move(around)) return {};
  // What a module makes for itself goes where that is moved.
  const Node owner = program::class_of_method(slice::body_of(made));
  if (owner && is_registered(made) && is_derived_from_module(owner, site.code) && is_moved(site, owner, 0)) return {};
  const std::string device = device_at_hand(site, made);
  if (device.empty()) return {};
  std::vector<program::Edit> edits;
  for (const Node layer : layers_beside(made)) {
    if (auto edit = program::append_to_expression(layer, move_to(device))) edits.push_back(std::move(*edit));
  }
  if (edits.empty()) return {};
  const std::string called = as_code(program::call_parts(made).callee.text());
  const bool makes = makes_layer(program::call_parts(made)) || !site.code.classes(slice::called_name(made)).empty();
  return Change{std::move(edits), "Move the " + (makes ? "new " + called : "module of " + called) +
                                      " to the device: " + as_code(move_to(device))};
}

}  // namespace devsan::report::fixes
