#include "hooks/inprocess/source/python_calls.h"

#include <algorithm>

#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

namespace {

// The bracket that the last character closes; npos where it closes none.
std::size_t opening_of_last(std::string_view text) {
  for (std::size_t open = text.find('('); open != text.npos; open = text.find('(', open + 1)) {
    if (closing_of(text, open) + 1 == text.size()) return open;
  }
  return text.npos;
}

// "name" and "value" of `name=value`; the first is empty where it is given by position.
struct Argument {
  std::string_view name;
  std::string_view value;
};

Argument argument_of(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, std::min(text.find_last_not_of(' ', equals - 1) + 1, text.size()));
  if (equals == text.npos || equals == 0 || !is_identifier(name) || text.substr(equals).starts_with("==")) {
    return {{}, text};
  }
  const std::size_t begin = std::min(text.find_first_not_of(' ', equals + 1), text.size());
  return {name, text.substr(begin)};
}

bool hands_all_on(const CallText& call) {
  const auto is_first = [&](const std::string& argument) { return &argument == &call.arguments.front(); };
  return std::ranges::all_of(call.arguments, [&](const std::string& argument) {
    return argument.starts_with('*') || (is_first(argument) && (argument == "self" || argument == "cls"));
  });
}

}  // namespace

std::optional<CallText> call_text(std::string_view expression) {
  const std::size_t open = opening_of_last(expression);
  if (open == expression.npos || open == 0) return std::nullopt;
  auto arguments = arguments_at(expression, open);
  if (!arguments) return std::nullopt;
  return CallText{std::string(expression.substr(0, open)), std::move(*arguments)};
}

std::optional<Parameter> parameter_of(std::string_view definition, std::string_view name) {
  const auto all = arguments_at(definition, std::min(definition.find('('), definition.size()));
  if (!all) return std::nullopt;
  bool by_position = true;
  std::size_t index = 0;
  for (const std::string& one : *all) {
    if (one == "/") continue;
    by_position = by_position && !one.starts_with('*');
    const std::string_view text = one;
    if (text.substr(0, text.find_first_of(":= ")) == name) {
      const std::size_t equals = text.find('=');
      Parameter found{std::string(name), std::nullopt, ""};
      if (by_position) found.index = index;
      if (equals != text.npos)
        found.standard = text.substr(std::min(text.find_first_not_of(' ', equals + 1), text.size()));
      return found;
    }
    ++index;
  }
  return std::nullopt;
}

bool is_bound(std::string_view definition) {
  const auto all = arguments_at(definition, std::min(definition.find('('), definition.size()));
  return all && !all->empty() && (all->front() == "self" || all->front() == "cls");
}

Given given_for(const Parameter& parameter, const CallText& call, bool bound) {
  const bool writes_self =
      call.callee.ends_with(".__init__") && !call.arguments.empty() && call.arguments.front() == "self";
  const std::size_t hidden = bound && !writes_self ? 1 : 0;
  bool counted = true;  // all positions so far
  bool unpacks = false;
  for (std::size_t k = 0; k < call.arguments.size(); ++k) {
    const std::string& text = call.arguments[k];
    if (text.starts_with('*')) {
      unpacks = true;
      counted = counted && text.starts_with("**");
      continue;
    }
    const Argument argument = argument_of(text);
    const bool named = !argument.name.empty() && argument.name == parameter.name;
    const bool placed = argument.name.empty() && counted && parameter.index == k + hidden;
    if (named || placed) return {Given::By::value, std::string(argument.value)};
  }
  if (unpacks) return {hands_all_on(call) ? Given::By::others : Given::By::nobody, ""};
  if (parameter.standard.empty()) return {};
  return {Given::By::standard, parameter.standard};
}

}  // namespace devsan::hooks
