#include "report/fixes/device_at_hand.h"

#include <algorithm>
#include <array>

#include "report/fixes/device_value.h"
#include "report/fixes/tensors.h"
#include "report/fixes/torch_calls.h"
#include "report/program/definitions.h"
#include "report/program/flow.h"
#include "report/program/functions.h"
#include "report/program/literals.h"
#include "report/program/positions.h"
#include "report/program/scopes.h"
#include "report/program/source_file.h"
#include "report/slice/torch_names.h"

namespace devsan::report::fixes {

using program::CallParts;
using program::Definition;
using program::DefinitionKind;
using program::Field;
using program::Kind;
using program::Node;
using program::Scope;
using program::SourceFile;

namespace {

bool is_called_device(std::string_view name) {
  constexpr auto kWords = std::to_array<std::string_view>({"device", "dev", "gpu"});
  return std::ranges::find(kWords, name) != kWords.end() || name.ends_with("_device") || name.ends_with("_dev");
}

// `x[:, None]`, `x[..., 0]`: only tensors are asked so.
bool is_tensor_subscript(Node subscript) {
  const std::vector<Node> keys = subscript.children(Field::Subscript);
  return keys.size() > 1 || std::ranges::any_of(keys, [](Node key) {
           return key.is(Kind::Slice) || key.is(Kind::NoneLiteral) || key.is(Kind::Ellipsis) || key.is(Kind::Tuple);
         });
}

// The condition says that the name is None, or nothing.
bool says_none(Node condition, std::string_view name) {
  const Node node = program::without_parentheses(condition);
  const std::string text(name);
  if (node.text() == text + " is None" || node.text() == "not " + text) return true;
  const auto parts = program::operations(node);
  return !parts.empty() && parts.front().operation == "and" &&
         std::ranges::any_of(program::operands(node), [&](Node one) { return says_none(one, name); });
}

// The place lies in a branch that runs where the name is None.
bool is_none_there(Node place, std::string_view name) {
  for (Node at = place; at.parent(); at = at.parent()) {
    const Node parent = at.parent();
    if (parent.is(Kind::IfStatement) && at.role() == Field::Consequence &&
        says_none(parent.child(Field::Condition), name)) {
      return true;
    }
    const bool choice = parent.is(Kind::ConditionalExpression);
    const program::ConditionalParts parts = choice ? program::conditional_parts(parent) : program::ConditionalParts();
    if (choice && parts.if_true == at && says_none(parts.condition, name)) return true;
  }
  return false;
}

class DeviceFinder {
 public:
  DeviceFinder(const Site& site, Node place, Node value)
      : site_(site),
        place_(place),
        value_(value),
        function_(slice::body_of(place)),
        file_(place.file()),
        own_root_(program::root_of(program::without_parentheses(value)).text()) {}

  std::vector<std::string> find() {
    if (site_.wanted != nullptr && function_ == site_.failing_function()) of_counterpart();
    if (site_.wanted != nullptr) of_counterpart_given();
    if (site_.device != "cpu") {
      of_variables(true);
      of_self(true);
      of_neighbours(true);
      of_replaced();
      of_variables(false);
      of_self(false);
      of_neighbours(false);
      of_parameters();
      of_module();
    }
    add("'" + site_.device_text() + "'");
    return std::move(found_);
  }

 private:
  void add(std::string text) {
    if (!text.empty() && std::ranges::find(found_, text) == found_.end()) found_.push_back(std::move(text));
  }

  // The name has a value when the code at the place runs.
  bool is_bound(std::string_view name) const {
    const Scope* binding = file_.scopes().binding(name, file_.scopes().of(place_));
    if (binding == nullptr || is_none_there(place_, name)) return false;
    if (binding->node != function_) return true;
    const program::Reaching reaching = file_.flow().reaching(program::Variable{name, {}}, place_);
    // In a loop it may get its value behind the place: the first time it has none.
    return std::ranges::any_of(reaching.definitions, [&](const program::Reached& one) {
      return !reaching.from_entry || one.definition->target.begin_byte() < place_.begin_byte();
    });
  }

  // The other operand in the function that fails.
  void of_counterpart() {
    const Operand& wanted = *site_.wanted;
    if (wanted.number || wanted.device_argument) return;
    const bool here = site_.failing_statement() == program::statement_of(place_);
    for (const std::string* text : {&wanted.text, &wanted.name}) {
      if (text->empty() || (text == &wanted.name && !wanted.spoken)) continue;
      const SourceFile snippet("", *text + "\n");
      if (snippet.has_errors() || snippet.root().children().size() != 1) continue;
      const Node expression = snippet.root().only_child().only_child();
      const std::string device = device_of(expression, here);
      if (!device.empty()) return add(device);
    }
  }

  // What the call gives to the function that fails, as the other operand.
  void of_counterpart_given() {
    const Node function = site_.failing_function();
    const program::Scope* scope = function ? function.file().scopes().made_by(function) : nullptr;
    if (scope == nullptr || !scope->is_function()) return;
    for (const Node ran : site_.code.calls_that_ran(function)) {
      if (!ran.contains(place_)) continue;
      std::size_t place = 0;
      for (const program::Parameter& one : scope->parameters) {
        if (program::class_of_method(function) && &one == &scope->parameters.front()) continue;
        const Node given = program::call_parts(ran).argument(one.name, place++);
        if (given && !given.contains(place_) && is_counterpart(one.name)) add(device_of(given, true));
      }
    }
  }

  // The other operand is the parameter, or is computed from it alone.
  bool is_counterpart(std::string_view parameter) const {
    const SourceFile snippet("", (site_.wanted->text.empty() ? site_.wanted->name : site_.wanted->text) + "\n");
    if (snippet.has_errors() || snippet.root().children().size() != 1) return false;
    Node node = snippet.root().only_child().only_child();
    while (const CallParts call = program::call_parts(node)) {
      if (!call.receiver() || !slice::is_tensor_method(call.method())) return false;
      node = call.receiver();
    }
    return node.is(Kind::Identifier) && node.text() == parameter;
  }

  // Of a tensor: its own, or that of what it is computed from.
  std::string device_of(Node given, bool here) const {
    const Node node = program::without_parentheses(given);
    if (const CallParts call = program::call_parts(node)) {
      if (is_move(call)) return device_of_moved(device_of_move(call));
      const bool same = call.receiver() && slice::is_tensor_method(call.method());
      return same ? device_of(call.receiver(), here) : "";
    }
    if (node.is(Kind::Subscript)) {
      if (here && node.text().find('(') == std::string_view::npos) return checked(node);
      return is_tensor_subscript(node) ? device_of(node.child(Field::Value), here) : "";
    }
    if (node.is(Kind::UnaryOperator)) return device_of(node.child(Field::Argument), here);
    if (node.is(Kind::BinaryOperator)) return device_of_operation(node, here);
    if (node.is(Kind::Attribute)) {
      const std::string_view name = slice::last_name(node);
      if (name == "T" || name == "mT" || name == "data") return device_of(node.child(Field::Object), here);
    }
    return program::dotted_name(node).empty() ? "" : checked(node);
  }

  // That of the one tensor among numbers; else that of the result, where the line computes it and it calls nothing.
  std::string device_of_operation(Node operation, bool here) const {
    std::vector<Node> others = program::operands(operation, true);
    std::erase_if(others, [](Node one) { return program::is_literal(program::without_parentheses(one)); });
    if (others.size() == 1) return device_of(others.front(), here);
    for (const Node node : operation.subtree()) {
      const bool variable = node.is(Kind::Identifier) && program::is_variable_name(node);
      if (node.is(Kind::Call) || (variable && !is_bound(node.text()))) return "";
    }
    return here ? "(" + std::string(operation.text()) + ").device" : "";
  }

  std::string device_of_moved(Node device) const {
    if (!device || program::dotted_name(device).empty()) return "";
    return is_bound(program::root_of(device).text()) ? std::string(device.text()) : "";
  }

  std::string checked(Node tensor) const {
    const std::string_view root = program::root_of(tensor).text();
    return is_bound(root) && is_same_later(root) && !is_stored_later(tensor) ? std::string(tensor.text()) + ".device"
                                                                             : "";
  }

  // The function gives the attribute its value between the place and where the operator fails.
  bool is_stored_later(Node attribute) const {
    const Node failing = site_.failing_statement();
    if (!attribute.is(Kind::Attribute) || !failing || function_ != site_.failing_function()) return false;
    return std::ranges::any_of(file_.definitions().all(), [&](const Definition& one) {
      return one.target.text() == attribute.text() && slice::body_of(one.target) == function_ &&
             one.target.begin_byte() > place_.begin_byte() && one.target.begin_byte() < failing.begin_byte();
    });
  }

  // The name has the same value at the place as where the operator fails.
  bool is_same_later(std::string_view root) const {
    const Node failing = site_.failing_statement();
    if (!failing || function_ != site_.failing_function() || failing == program::statement_of(place_)) return true;
    const auto at = [&](Node node) {
      std::vector<const Definition*> all;
      for (const auto& one : file_.flow().reaching(program::Variable{root, {}}, node).definitions) {
        all.push_back(one.definition);
      }
      std::ranges::sort(all);
      return all;
    };
    return at(place_) == at(failing);
  }

  template <class Said>
  bool fits(const Said& says, bool known) const {
    const auto said = device_value(says, site_.code);
    return said ? site_.is_there(*said) && known : !known;
  }

  // Names of the function, and of those and the module around it.
  void of_variables(bool known) {
    for (const Scope* scope = &file_.scopes().of(place_); scope != nullptr; scope = scope->parent) {
      if (scope->kind == program::ScopeKind::Class && scope->node != function_) continue;
      for (const std::string_view name : scope->names) {
        const bool called = known || (is_called_device(name) && !follows(name));
        if (name != own_root_ && called && is_device(*scope, name, known)) {
          add(std::string(name));
        }
      }
    }
  }

  // The value is where the variable says already, and that is not where it is wanted.
  bool follows(std::string_view name) const {
    const program::Subtree nodes = value_.subtree();
    return std::ranges::any_of(nodes.begin(), nodes.end(), [&](Node one) {
      return one.is(Kind::Identifier) && one.text() == name && program::is_variable_name(one);
    });
  }

  bool is_device(const Scope& scope, std::string_view name, bool known) const {
    if (!is_bound(name) || file_.scopes().binding(name, file_.scopes().of(place_)) != &scope) return false;
    std::vector<const Definition*> definitions;
    if (scope.node == function_) {
      for (const auto& one : file_.flow().reaching(program::Variable{name, {}}, place_).definitions) {
        definitions.push_back(one.definition);
      }
    } else {
      definitions = file_.definitions().of_name(scope, name);
    }
    return !definitions.empty() && std::ranges::all_of(definitions, [&](const Definition* one) {
      const bool plain = one->kind == DefinitionKind::Assignment || one->kind == DefinitionKind::Parameter;
      if (one->kind == DefinitionKind::LoopTarget) return !known && is_called_device(name);
      return plain && fits(*one, known);
    });
  }

  // `self.device`, which a method of the class stores.
  void of_self(bool known) {
    const Node owner = program::class_of_method(function_);
    const Scope* scope = owner ? file_.scopes().made_by(function_) : nullptr;
    if (scope == nullptr || scope->parameters.empty() || scope->parameters.front().name != "self") return;
    for (const Definition& one : file_.definitions().all()) {
      if (one.variable.name != "self" || one.variable.steps.size() != 1 || !one.is_attribute_store()) continue;
      const std::string_view name = slice::last_name(one.target);
      const Node function = slice::body_of(one.statement);
      const bool later = function == function_ && one.target.begin_byte() > place_.begin_byte();
      const bool constructing = slice::name_of_function(function_) == "__init__" && function != function_;
      if (program::class_of(one.statement) != owner || later || constructing) continue;
      if ((known || is_called_device(name)) && one.own_value() && fits(one, known)) {
        add("self." + std::string(name));
      }
    }
  }

  // What a part of a module is replaced by goes to where that part is.
  void of_replaced() {
    const Node owner = program::class_of_method(function_);
    for (Node at = place_; at && !program::is_statement(at); at = at.parent()) {
      if (at.parent().is(Kind::Assignment) && at.role() == Field::Right) return of_part(at.parent().child(Field::Left));
      const CallParts set = program::call_parts(at);
      const bool of_module = owner && is_derived_from_module(owner, site_.code);
      if (set && set.callee.text() == "setattr" && set.positional.size() == 3 && of_module &&
          slice::name_of_function(function_) != "__init__" && !site_.code.calls("register_buffer").empty()) {
        const std::string object(set.positional[0].text());
        return add("getattr(" + object + ", " + std::string(set.positional[1].text()) + ").device");
      }
    }
  }

  void of_part(Node target) {
    if (!target.is(Kind::Attribute) || slice::name_of_function(function_) == "__init__") return;
    const std::string_view name = slice::last_name(target);
    const auto registers = [&](Node call) {
      const CallParts parts = program::call_parts(call);
      const bool nothing = parts.positional.size() > 1 && parts.positional[1].is(Kind::NoneLiteral);
      return !parts.positional.empty() && program::string_value(parts.positional.front()) == name && !nothing;
    };
    if (std::ranges::any_of(site_.code.calls("register_buffer"), registers))
      add(std::string(target.text()) + ".device");
  }

  // What calls of the function give as a device.
  void of_neighbours(bool known) {
    for (const Node call : program::calls_in(function_)) {
      const CallParts parts = program::call_parts(call);
      Node device = parts.keyword("device");
      if (!device && is_move(parts)) device = device_of_move(parts);
      if (!device || place_.contains(call) || program::dotted_name(device).empty()) continue;
      const std::string_view root = program::root_of(device).text();
      if (root == own_root_ || !is_bound(root) || says_device(device)) continue;
      const bool named = device.is(Kind::Attribute) || is_called_device(device.text());
      if (named && fits(device, known)) add(std::string(device.text()));
    }
  }

  // A tensor that the function gets.
  void of_parameters() {
    const Scope* scope = file_.scopes().made_by(function_);
    if (scope == nullptr || !scope->is_function()) return;
    for (const program::Parameter& one : scope->parameters) {
      const bool single = one.kind != program::ParameterKind::Arguments && one.kind != program::ParameterKind::Keywords;
      if (!single || one.name == "self" || one.name == "cls" || one.name == own_root_ || !is_bound(one.name)) continue;
      if (is_odd(one.name)) continue;
      if (is_used_as_tensor(function_, one.name) && !is_used_as_other(function_, one.name)) {
        add(std::string(one.name) + ".device");
      }
    }
  }

  bool is_odd(std::string_view name) const {
    return function_ == site_.failing_function() && (site_.moved->name == name || site_.moved->text == name);
  }

  // A module whose parameters the other operand is one of.
  void of_module() {
    if (site_.wanted == nullptr || slice::name_of_function(function_) == "__init__") return;
    const bool part = site_.wanted->is == trace::NameKind::parameter || site_.wanted->is == trace::NameKind::buffer;
    const Node owner = program::class_of_method(function_);
    if (!part || !owner || !is_derived_from_module(owner, site_.code)) return;
    const bool same_object =
        owner == program::class_of(site_.failing_statement()) && site_.wanted->name.starts_with("self.");
    if (same_object) add("next(self.parameters()).device");
  }

  const Site& site_;
  Node place_;
  Node value_;
  Node function_;
  const SourceFile& file_;
  std::string_view own_root_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> devices_at_hand(const Site& site, Node place, Node value) {
  return DeviceFinder(site, place, value).find();
}

std::string device_at_hand(const Site& site, Node place, Node value, std::string_view given) {
  for (std::string& device : devices_at_hand(site, place, value)) {
    if (device != given) return std::move(device);
  }
  return "";
}

}  // namespace devsan::report::fixes
