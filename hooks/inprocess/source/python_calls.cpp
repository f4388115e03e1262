#include "hooks/inprocess/source/python_calls.h"

#include <algorithm>

#include "hooks/inprocess/source/python_text.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kMaxCallees = 16;

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

// "run" of `Backend(net).run(x)`, where the brackets behind "Backend" open at `open`; empty without a call on the
// result.
std::string method_called_on(std::string_view text, std::size_t open) {
  const std::size_t closing = closing_of(text, open);
  std::string_view rest = closing == text.npos ? std::string_view() : text.substr(closing + 1);
  if (!rest.starts_with('.')) return "";
  rest.remove_prefix(1);
  const auto end = std::ranges::find_if_not(rest, [](char c) { return trace::is_word(c); });
  const std::size_t length = static_cast<std::size_t>(end - rest.begin());
  return rest.substr(length).starts_with('(') ? std::string(rest.substr(0, length)) : std::string();
}

}  // namespace

std::vector<std::string> callees_in(std::string_view text) {
  std::vector<std::string> callees;
  const auto of_path = [](char c) { return trace::is_word(c) || c == '.'; };
  for (std::size_t begin = 0; begin < text.size() && callees.size() < kMaxCallees; ++begin) {
    if (!trace::is_word(text[begin]) || (begin > 0 && (of_path(text[begin - 1]) || text[begin - 1] == ')'))) continue;
    std::size_t end = begin;
    while (end < text.size() && (of_path(text[end]) || text[end] == '[')) {
      const std::size_t closing = text[end] == '[' ? closing_of(text, end) : end;
      end = closing == text.npos ? text.size() : closing + 1;
    }
    if (!text.substr(std::min(end, text.size())).starts_with('(')) continue;
    const std::string_view callee = text.substr(begin, end - begin);
    callees.emplace_back(callee);
    if (std::string method = method_called_on(text, end); !method.empty()) {
      callees.push_back(std::string(callee) + "." + method);
    }
  }
  return callees;
}

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
