#include "report/fixes/device_value.h"

#include <algorithm>

#include "report/program/definitions.h"
#include "report/program/expressions.h"
#include "report/program/flow.h"
#include "report/program/functions.h"
#include "report/program/literals.h"
#include "report/program/positions.h"
#include "report/program/source_file.h"

namespace devsan::report::fixes {

using program::CallParts;
using program::Definition;
using program::DefinitionKind;
using program::Field;
using program::Kind;
using program::Node;

namespace {

using MaybeDevice = std::optional<std::string>;

constexpr int kDeepest = 6;  // names that stand for names

class DeviceReader {
 public:
  explicit DeviceReader(const slice::Code& code) : code_(code) {}

  MaybeDevice read(Node given, int depth) const {
    const Node node = program::without_parentheses(given);
    if (!node || depth > kDeepest) return {};
    if (const auto text = program::string_value(node)) return of_text(*text);
    switch (node.kind()) {
      case Kind::Call:
        return of_call(program::call_parts(node), depth);
      case Kind::ConditionalExpression:
        return of_conditional(program::conditional_parts(node), depth);
      case Kind::Subscript:
        return of_entry(node, depth);
      case Kind::Identifier:
        return of_definitions(node, depth);
      case Kind::Attribute:
        return of_attribute(node, depth);
      default:
        return {};
    }
  }

  MaybeDevice of_all(const std::vector<const Definition*>& definitions, int depth) const {
    MaybeDevice found;
    for (const Definition* one : definitions) {
      const MaybeDevice device = one->kind == DefinitionKind::Parameter    ? of_parameter(*one, depth)
                                 : one->kind == DefinitionKind::Assignment ? read(one->own_value(), depth + 1)
                                                                           : std::nullopt;
      if (!device || (found && *found != *device)) return {};
      found = device;
    }
    return found;
  }

 private:
  static MaybeDevice of_text(const std::string& text) {
    const bool device = text == "cpu" || text == "cuda" || text.starts_with("cuda:");
    return device ? MaybeDevice(text) : std::nullopt;
  }

  MaybeDevice of_call(const CallParts& call, int depth) const {
    const std::string origin = program::origin_of(call.callee);
    if (origin != "torch.device" && origin != "str") return {};
    const MaybeDevice type = call.positional.empty() ? std::nullopt : read(call.positional[0], depth + 1);
    const Node index = call.argument("index", 1);
    if (!type || !index) return type;
    const auto number = number_of(index, depth);
    return number ? MaybeDevice(*type + ":" + std::to_string(*number)) : std::nullopt;
  }

  std::optional<std::int64_t> number_of(Node node, int depth) const {
    const auto number = program::integer_value(node);
    if (number || !node.is(Kind::Identifier) || depth > kDeepest) return number;
    const auto found = node.file().flow().reaching(node).definitions;
    if (found.size() != 1) return {};
    const Definition& one = *found.front().definition;
    if (one.kind == DefinitionKind::Assignment && one.path.empty()) return number_of(one.value, depth + 1);
    const std::vector<Node> given = one.kind == DefinitionKind::Parameter ? given_to(one) : std::vector<Node>();
    return given.size() == 1 ? number_of(given.front(), depth + 1) : std::nullopt;
  }

  // Where there is a GPU, and here is one.
  MaybeDevice of_conditional(const program::ConditionalParts& parts, int depth) const {
    const MaybeDevice if_true = read(parts.if_true, depth + 1);
    if (parts.condition.text().find("is_available") != std::string_view::npos) return if_true;
    const MaybeDevice if_false = read(parts.if_false, depth + 1);
    return if_true == if_false ? if_true : std::nullopt;
  }

  // `devices[1]` of a list that is written down.
  MaybeDevice of_entry(Node node, int depth) const {
    const std::vector<Node> keys = node.children(Field::Subscript);
    const std::int64_t index = keys.size() == 1 ? program::integer_value(keys.front()).value_or(-1) : -1;
    const Node container = node.child(Field::Value);
    if (index < 0 || !container.is(Kind::Identifier)) return {};
    const auto found = container.file().flow().reaching(container).definitions;
    if (found.size() != 1 || !found.front().definition->value) return {};
    const std::vector<Node> elements = program::elements(found.front().definition->value);
    const auto place = static_cast<std::size_t>(index);
    return place < elements.size() ? read(elements[place], depth + 1) : std::nullopt;
  }

  MaybeDevice of_definitions(Node name, int depth) const {
    const program::Reaching reaching = name.file().flow().reaching(name);
    std::vector<const Definition*> all;
    for (const program::Reached& one : reaching.definitions) all.push_back(one.definition);
    return of_all(all, depth);
  }

  // What the calls that ran gave; the default where one gave nothing. Empty where that is not known.
  std::vector<Node> given_to(const Definition& parameter) const {
    const Node function = parameter.scope->node;
    const auto& parameters = parameter.scope->parameters;
    std::size_t place = 0;
    while (place < parameters.size() && parameters[place].name != parameter.variable.name) ++place;
    if (program::class_of_method(function) && place > 0) --place;
    slice::Nodes calls = code_.calls_that_ran(function);
    if (calls.empty() && !program::class_of_method(function)) calls = code_.calls(slice::name_of_function(function));
    std::vector<Node> values;
    for (const Node ran : calls) {
      const CallParts call = program::call_parts(ran);
      const Node given = call.argument(parameter.variable.name, place);
      if (call.has_star || call.has_double_star || (!given && !parameter.value)) return {};
      values.push_back(given ? given : parameter.value);
    }
    return values;
  }

  MaybeDevice of_parameter(const Definition& parameter, int depth) const {
    MaybeDevice found;
    for (const Node value : given_to(parameter)) {
      const MaybeDevice device = read(value, depth + 1);
      if (!device || (found && *found != *device)) return {};
      found = device;
    }
    return found;
  }

  // `self.device`: what the class stores.
  MaybeDevice of_attribute(Node node, int depth) const {
    const Node object = node.child(Field::Object);
    const Node owner = program::class_of(node);
    if (!object.is(Kind::Identifier) || object.text() != "self" || !owner) return {};
    std::vector<const Definition*> stores;
    for (const Definition* one : code_.stores(slice::last_name(node))) {
      const bool own = program::class_of(one->statement) == owner && one->variable.name == "self";
      if (own) stores.push_back(one);
    }
    return of_all(stores, depth);
  }

  const slice::Code& code_;
};

}  // namespace

std::optional<std::string> device_value(Node expression, const slice::Code& code) {
  return DeviceReader(code).read(expression, 0);
}

std::optional<std::string> device_value(const Definition& definition, const slice::Code& code) {
  return DeviceReader(code).of_all({&definition}, 0);
}

bool is_same_device(std::string_view said, std::string_view device) {
  const auto numbered = [](std::string_view text) { return text == "cuda" ? "cuda:0" : text; };
  return numbered(said) == numbered(device);
}

bool says_device(Node expression) {
  const Node node = program::without_parentheses(expression);
  const auto is_text = [](Node one) {
    const auto text = program::string_value(one);
    return text && (*text == "cpu" || *text == "cuda" || text->starts_with("cuda:"));
  };
  if (is_text(node)) return true;
  const CallParts call = program::call_parts(node);
  return call && program::origin_of(call.callee) == "torch.device" && !call.positional.empty() &&
         is_text(call.positional.front());
}

}  // namespace devsan::report::fixes
