#include "hooks/inprocess/evidence/factory_text.h"

#include <algorithm>
#include <array>

#include "hooks/inprocess/events/operator_table.h"
#include "hooks/inprocess/source/python_statements.h"
#include "hooks/inprocess/source/python_text.h"
#include "trace/file_layout.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

using trace::is_word;

constexpr std::string_view kAten = "aten::";

// Whether an operator makes tensors of numbers alone: `zeros_like` and `full` with a tensor in it follow a device.
bool makes_of_numbers(const OperatorText& text) {
  const std::string_view schema = text.schema;
  return schema.substr(0, schema.find(" -> ")).find("Tensor") == schema.npos;
}

// "arange" of `torch.arange`: by torch's own list of operators, but for what its Python makes by itself.
bool is_factory_name(std::string_view name) {
  constexpr std::array<std::string_view, 2> kOfPython = {"tensor", "from_numpy"};
  if (std::ranges::find(kOfPython, name) != kOfPython.end()) return true;
  for (std::uint16_t id = 1;; ++id) {
    const OperatorText* text = operator_text(trace::OperatorId(id));
    if (text == nullptr) return false;
    const std::string_view full = text->name;
    if (!full.starts_with(kAten) || full.substr(kAten.size()) != name) continue;
    if (is_factory(trace::OperatorId(id)) && makes_of_numbers(*text)) return true;
  }
}

bool says_device(std::string_view expression) {
  constexpr std::array<std::string_view, 8> kSay = {"device", "(**",   ", **",   ".to(",
                                                    ".cuda(", ".cpu(", "_like(", ".new_"};
  return std::ranges::any_of(kSay, [&](std::string_view one) { return expression.find(one) != expression.npos; });
}

// "torch.nn.functional.pad" before the bracket at `open`; empty where no call begins there.
std::string_view callee_before(std::string_view expression, std::size_t open) {
  std::size_t begin = open;
  while (begin != 0 && (is_word(expression[begin - 1]) || expression[begin - 1] == '.')) --begin;
  return expression.substr(begin, open - begin);
}

}  // namespace

bool stays_on_device(std::string_view expression) {
  constexpr std::array<std::string_view, 7> kBuiltIn = {"abs", "float", "int", "len", "max", "min", "range"};
  if (says_device(expression)) return false;
  for (std::size_t at = expression.find('('); at != expression.npos; at = expression.find('(', at + 1)) {
    const std::string_view callee = callee_before(expression, at);
    if (callee.empty() || callee.starts_with('.')) continue;  // `(a + b)`, `(a + b).sum()`
    const bool method = callee.find('.') != callee.npos && !callee.starts_with("self.");
    if (!method && std::ranges::find(kBuiltIn, callee) == kBuiltIn.end()) return false;
  }
  return true;
}

bool is_made_by_default(std::string_view expression) {
  constexpr std::string_view kTorch = "torch.";
  if (says_device(expression)) return false;
  for (std::size_t at = expression.find(kTorch); at != expression.npos; at = expression.find(kTorch, at + 1)) {
    if (at != 0 && (is_word(expression[at - 1]) || expression[at - 1] == '.')) continue;
    const std::string_view name = expression.substr(at + kTorch.size());
    const std::size_t end = static_cast<std::size_t>(std::ranges::find_if_not(name, is_word) - name.begin());
    if (end < name.size() && name[end] == '(' && is_factory_name(name.substr(0, end))) return true;
  }
  return false;
}

std::vector<std::string> variables_in(std::string_view expression) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < expression.size();) {
    const char c = expression[at];
    int lines = 0;
    if (c == '"' || c == '\'') {
      at = end_of_string(expression, at, lines);
      if (at == expression.npos) break;
      continue;
    }
    std::size_t end = at;
    while (end < expression.size() && is_word(expression[end])) ++end;
    if (end == at) {
      ++at;
      continue;
    }
    const std::string_view word = expression.substr(at, end - at);
    const char after = end < expression.size() ? expression[end] : ' ';
    const bool named = after == '=' && expression.substr(end, 2) != "==";
    const bool part = (at != 0 && expression[at - 1] == '.') || after == '(' || named;
    if (!part && is_identifier(word) && std::ranges::find(found, word) == found.end()) found.emplace_back(word);
    at = end;
  }
  return found;
}

}  // namespace devsan::hooks
