// Calls: what moves, makes or returns a value, and who gave a function its arguments.

#include <algorithm>

#include "report/program/functions.h"
#include "report/program/literals.h"
#include "report/program/positions.h"
#include "report/slice/slicer.h"
#include "report/slice/torch_names.h"

namespace devsan::report::slice {

using program::Argument;
using program::CallParts;
using program::Definition;
using program::Field;
using program::Kind;
using program::Node;

namespace {

constexpr std::size_t kMostCallers = 6;  // of one function
constexpr std::size_t kMostMethods = 6;  // of one name, where no class is known

Node taken_from_splat(Node value) {
  return value.is(Kind::ListSplat) ? value.only_child() : value;
}

// The keyword that says a device: `device=`, `map_location=`.
Node device_keyword(const CallParts& parts) {
  const Node device = parts.keyword("device");
  return device ? device : parts.keyword("map_location");
}

Node double_star_of(const CallParts& parts) {
  const auto found = std::ranges::find(parts.arguments, Argument::Kind::DoubleStar, &Argument::kind);
  return found == parts.arguments.end() ? Node() : found->value;
}

Node star_of(const CallParts& parts) {
  const auto found = std::ranges::find(parts.arguments, Argument::Kind::Star, &Argument::kind);
  return found == parts.arguments.end() ? Node() : found->value;
}

// Parameters of a method without the first one, which is the object.
std::vector<std::string_view> given_parameters(Node function) {
  std::vector<std::string_view> names;
  const program::Scope* scope = function.file().scopes().made_by(function);
  if (scope == nullptr) return names;
  for (const program::Parameter& one : scope->parameters) names.push_back(one.name);
  if (program::class_of_method(function) && !names.empty()) names.erase(names.begin());
  return names;
}

bool is_kept(Node decorator) {
  return decorator.text().find("cache") != std::string_view::npos;
}

}  // namespace

void Slicer::call(Node node, double distance, Aspect aspect) {
  const CallParts parts = program::call_parts(node);
  const std::string_view called = called_name(node);
  if (call_of_move(parts, distance, aspect) || call_of_maker(parts, distance, aspect)) return;
  if (aspect == Aspect::device && called == "device") {
    const bool written = !parts.positional.empty() && program::is_string(parts.positional.front());
    add(node, written ? Role::device_written : Role::made_where_told, distance, aspect);
    for (const Argument& argument : parts.arguments) push(argument.value, distance + 0.5, aspect);
    return;
  }
  if (aspect != Aspect::device && gives_number(called) && !code_.defines(called)) return;
  const bool known = call_of_program(parts, distance, aspect);
  if (call_of_layer(parts, distance)) return;
  const Node receiver = parts.receiver();
  if (!known) {
    call_of_unknown(parts, distance, aspect);
  } else {
    push(receiver, distance + 3, aspect == Aspect::value ? Aspect::module : aspect);
  }
  for (const Argument& argument : parts.arguments) push(argument.value, distance + (known ? 2 : 1), aspect);
}

bool Slicer::call_of_move(const CallParts& parts, double distance, Aspect aspect) {
  if (!parts.receiver() || !moves(parts.method())) return false;
  add(parts.call, Role::moved, distance, aspect);
  if (aspect != Aspect::device) device_arguments(parts, distance);
  if (parts.method() == "type_as") {
    for (const Node argument : parts.positional) push(argument, distance + 1, Aspect::device);
  }
  push(parts.receiver(), distance + 1, aspect);
  return true;
}

bool Slicer::call_of_maker(const CallParts& parts, double distance, Aspect aspect) {
  const std::string_view called = called_name(parts.call);
  if (aspect == Aspect::device || !makes_tensor(called) || code_.defines(called)) return false;
  const Node device = device_keyword(parts);
  Role role = Role::made_where_told;
  if (wraps_tensor(called)) {
    role = Role::registered;
  } else if (!device) {
    role = makes_alike(called) ? Role::made_alike : Role::made;
  } else if (program::is_string(device) || device.is(Kind::Call)) {
    role = Role::made_where_written;
  }
  add(parts.call, role, distance, aspect);
  push(device, distance + 1, Aspect::device);
  if (makes_from_argument(called)) {
    for (const Node argument : parts.positional) push(argument, distance + 1, aspect);
  }
  if (called.starts_with("new_")) push(parts.receiver(), distance + 1, aspect);
  if (called == "load" && parts.positional.size() > 1) push(parts.positional[1], distance + 1, Aspect::device);
  push(double_star_of(parts), distance + 1, Aspect::device);
  return true;
}

bool Slicer::call_of_layer(const CallParts& parts, double distance) {
  if (!makes_layer(parts.callee) || code_.defines(called_name(parts.call))) return false;
  add(parts.call, Role::constructed, distance, Aspect::module);
  object_at(parts.call, distance + 0.5);
  push(parts.keyword("device"), distance + 1, Aspect::device);
  push(double_star_of(parts), distance + 1, Aspect::device);
  for (const Argument& argument : parts.arguments) push(argument.value, distance + 1.5, Aspect::module);
  return true;
}

// Functions and classes of the program that a call may mean.
Nodes Slicer::methods_called(const CallParts& parts) const {
  if (parts.callee.is(Kind::Identifier)) return code_.called_by_name(parts.callee);
  const std::string_view called = called_name(parts.call);
  Nodes found = code_.classes(called);
  Nodes methods = code_.functions(called);
  const Node owner = parts.receiver() ? code_.class_of_object(parts.receiver()) : Node();
  if (owner) {
    Nodes own = methods;
    std::erase_if(own, [&](Node one) { return !is_in(one, code_.family_of(owner)); });
    if (!own.empty()) methods = std::move(own);
  }
  if (methods.size() > kMostMethods) methods.resize(kMostMethods);
  found.insert(found.end(), methods.begin(), methods.end());
  return found;
}

bool Slicer::call_of_program(const CallParts& parts, double distance, Aspect aspect) {
  const Nodes called = methods_called(parts);
  if (std::ranges::any_of(called, [](Node one) { return one.is(Kind::ClassDefinition); })) {
    add(parts.call, Role::constructed, distance, aspect);
    if (aspect != Aspect::device) object_at(parts.call, distance + 0.5);
    for (const Argument& argument : parts.arguments) {
      if (argument.name.find("dev") != std::string_view::npos) push(argument.value, distance + 1, Aspect::device);
    }
    return true;
  }
  Nodes functions = called;
  // `self.layer(x)`, `model(x)`: an object is called.
  for (const std::string_view method : {"forward", "__call__"}) {
    if (!called.empty()) break;
    const Node owner = code_.class_of_object(parts.callee);
    for (const Node function : code_.functions(method)) {
      const bool own = owner ? is_in(function, code_.family_of(owner))
                             : code_.may_be_object_of(parts.callee, program::class_of_method(function));
      if (own) functions.push_back(function);
    }
  }
  if (functions.empty()) return false;
  add(parts.call, Role::called, distance, aspect);
  for (const Node function : functions) returns(function, distance + 1, aspect);
  return true;
}

// Something that is not the program's, or is called by a name that says nothing: its operands are followed.
void Slicer::call_of_unknown(const CallParts& parts, double distance, Aspect aspect) {
  add(parts.call, Role::computed, distance, aspect);
  const Node receiver = parts.receiver();
  const bool of_self = receiver && receiver.text().starts_with("self") && !is_tensor_method(parts.method());
  const bool by_name = parts.callee.is(Kind::Subscript) || parts.callee.is(Kind::Identifier);
  if ((aspect == Aspect::value && by_name) || of_self) {
    const Node own = body_of(parts.call);
    for (const std::string_view method : {"forward", "__call__"}) {
      for (const Node function : code_.functions(method)) {
        if (function != own) returns(function, distance + 3, aspect);
      }
    }
  }
  if (receiver) {
    push(receiver, distance + 1, aspect);
  } else {
    push(parts.callee, distance + 1.5, aspect);
  }
}

void Slicer::device_arguments(const CallParts& parts, double distance) {
  for (const Node argument : parts.positional) push(argument, distance + 1, Aspect::device);
  push(device_keyword(parts), distance + 1, Aspect::device);
}

// ---- functions

void Slicer::returns(Node function, double distance, Aspect aspect, Role role) {
  if (!is_nearer("returns", "", function, aspect, distance)) return;
  if (function.is(Kind::FunctionDefinition)) {
    for (const Node decorator : program::decorators_of(function)) {
      if (is_kept(decorator)) add(decorator, Role::cached, distance + 0.5, aspect, function);
    }
  }
  const program::Returns returned = program::returns_of(function);
  std::vector<Node> values = returned.values;
  values.insert(values.end(), returned.yielded.begin(), returned.yielded.end());
  for (const Node value : values) {
    const Node statement = program::statement_of(value);
    add(statement, role, distance + 0.5, aspect, value);
    guards(statement, distance + 1, aspect);
    push(value, distance + 1, aspect, part_);
  }
}

bool Slicer::may_call(Node call, Node function, Node owner) const {
  const Node callee = call.child(Field::Function);
  if (callee.is(Kind::Identifier)) {
    const Nodes meant = code_.called_by_name(callee);
    return !owner && (meant.empty() || std::ranges::find(meant, function) != meant.end());
  }
  if (!owner || !callee.is(Kind::Attribute)) return true;
  const Node known = code_.class_of_object(callee.child(Field::Object));
  return !known || is_in(function, code_.family_of(known));
}

// Each with whether it was seen running.
std::vector<std::pair<Node, bool>> Slicer::callers_of(Node function) const {
  std::vector<std::pair<Node, bool>> found;
  for (const Node call : code_.calls_that_ran(function)) found.emplace_back(call, true);
  const std::string_view name = name_of_function(function);
  const Node owner = program::class_of_method(function);
  const bool constructor = name == "__init__" && owner;
  if (!found.empty() && !constructor) return found;
  const auto add_all = [&](const Nodes& calls) {
    for (const Node call : calls) {
      const bool known = std::ranges::any_of(found, [&](const auto& one) { return one.first == call; });
      if (!known) found.emplace_back(call, false);
    }
  };
  if (!constructor) {
    Nodes calls = code_.calls(name);
    std::erase_if(calls, [&](Node call) { return !may_call(call, function, owner); });
    add_all(calls);
    const bool called_as_object = (name == "forward" || name == "__call__") && owner && found.empty();
    for (const FileIndex* index : code_.files()) {
      if (!called_as_object) break;
      for (const Node call : index->all_calls()) {
        if (code_.may_be_object_of(call.child(Field::Function), owner)) add_all({call});
      }
    }
    return found;
  }
  add_all(code_.calls(name_of_class(owner)));
  for (const Node derived : code_.subclasses_of(name_of_class(owner))) add_all(code_.calls(name_of_class(derived)));
  for (const Node call : code_.calls("__init__")) {
    const Node from = program::class_of(call);
    if (from && is_derived_from(from, name_of_class(owner))) add_all({call});
  }
  return found;
}

void Slicer::parameter(const Definition& definition, double distance, Aspect aspect) {
  const Node function = definition.scope != nullptr ? definition.scope->node : Node();
  if (!function) return;
  const Node owner = program::class_of_method(function);
  const auto& parameters = definition.scope->parameters;
  const std::string_view name = definition.variable.name;
  if (owner && !parameters.empty() && parameters.front().name == name) {
    object_of_method(function, distance);
    return made_objects(owner, distance + 1, aspect);
  }
  if (owner && name_of_function(function) == "forward" && aspect == Aspect::value) hooks(distance + 1, aspect);
  const auto callers = callers_of(function);
  bool given = false;
  std::size_t count = 0;
  for (const auto& [call, ran] : callers) {
    if (count++ == kMostCallers) break;
    given |= given_by(program::call_parts(call), definition, distance + (ran ? 0 : 1), aspect);
  }
  if (definition.value) {
    add(definition.value, given ? Role::default_stands_by : Role::default_used, distance + 1, aspect);
    push(definition.value, distance + 1, aspect);
  }
  if (callers.empty()) references_to(function, distance + 1, aspect);
}

bool Slicer::given_by(const CallParts& call, const Definition& parameter, double distance, Aspect aspect) {
  const Node function = parameter.scope->node;
  const std::string_view name = parameter.variable.name;
  const std::vector<std::string_view> names = given_parameters(function);
  const auto place = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  Node value = call.keyword(name);
  if (!value && place < names.size()) {
    const std::string_view called = called_name(call.call);
    const bool other_name = called != name_of_function(function) && name_of_function(function) != "__init__";
    if (place < call.positional.size()) {
      value = call.positional[place];
    } else if (call.has_star) {
      value = star_of(call);
    } else if (other_name && !call.positional.empty()) {
      value = call.positional.back();  // through `partial`, `map`, an executor: the places are not the function's own
    }
  }
  const bool from_keywords = !value && call.has_double_star;
  if (from_keywords) value = double_star_of(call);
  if (!value) {
    add(call.call, Role::argument_left_out, distance + 0.5, aspect);
    const program::Parameter* own = parameter.scope->parameter(name);
    const bool collects = own != nullptr && (own->kind == program::ParameterKind::Arguments ||
                                             own->kind == program::ParameterKind::Keywords);
    for (const Argument& argument : call.arguments) {
      if (collects) push(argument.value, distance + 1, aspect);
    }
    return false;
  }
  add(call.call, Role::argument, distance + 0.5, aspect, value);
  if (value.line() != call.call.line()) add(value, Role::argument, distance + 0.5, aspect);
  Part part = part_;
  if (part.key.empty() && from_keywords) part.key = std::string(name);
  push(taken_from_splat(value), distance + 1, aspect, part);
  guards(program::statement_of(call.call), distance + 1, aspect);
  return true;
}

// Places that hand a function on as a value: a callback, `partial`, `collate_fn=`.
void Slicer::references_to(Node function, double distance, Aspect aspect) {
  const std::string_view name = name_of_function(function);
  if (!function.is(Kind::FunctionDefinition) || name.size() < 3) return;
  for (const Node mention : code_.mentions(name)) {
    if (mention.role() == Field::Function) continue;
    add(mention, Role::referred, distance, aspect);
    const Node call = mention.enclosing(Kind::Call);
    if (!call) continue;
    for (const Argument& argument : program::call_parts(call).arguments) push(argument.value, distance + 1, aspect);
  }
}

void Slicer::hooks(double distance, Aspect aspect) {
  if (!is_nearer("hooks", "", {}, aspect, distance)) return;
  for (const FileIndex* index : code_.files()) {
    for (const Node call : index->all_calls()) {
      if (!registers_hook(called_name(call))) continue;
      add(call, Role::hook_registered, distance, aspect);
      const Node hook = program::call_parts(call).argument("hook", 0);
      if (hook.is(Kind::Lambda)) push(hook, distance + 1, aspect);
      const std::string_view named = hook.is(Kind::Call) ? called_name(hook) : last_name(hook);
      for (const Node function : code_.functions(named)) {
        returns(function, distance + 1, aspect, Role::returned_by_hook);
      }
      for (const Node function : code_.functions("__call__")) {
        const Node owner = program::class_of_method(function);
        const bool object = owner && (named == name_of_class(owner) || code_.may_be_object_of(hook, owner));
        if (object) returns(function, distance + 1, aspect, Role::returned_by_hook);
      }
    }
  }
}

}  // namespace devsan::report::slice
