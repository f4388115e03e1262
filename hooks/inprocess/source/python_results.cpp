#include "hooks/inprocess/source/python_results.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_loops.h"
#include "hooks/inprocess/source/python_puts.h"

namespace devsan::hooks {

namespace {

constexpr std::string_view kReturn = "return ";

// "a" and "(b, c)" of "a, (b, c)", and of "(a, (b, c))".
std::vector<std::string> parts_of_tuple(std::string_view text) {
  text = trimmed(text);
  const bool bracketed = text.starts_with('(') && closing_of(text, 0) + 1 == text.size();
  const std::string whole = bracketed ? std::string(text) : "(" + std::string(text) + ")";
  return arguments_at(whole, 0).value_or(std::vector<std::string>());
}

// "torch.int" of a call with `dtype=torch.int`, by "dtype="; empty without it.
std::string_view keyword_of(const CallText& call, std::string_view keyword) {
  const auto given = std::ranges::find_if(
      call.arguments, [keyword](const std::string& argument) { return argument.starts_with(keyword); });
  return given != call.arguments.end() ? std::string_view(*given).substr(keyword.size()) : std::string_view();
}

// "self.plan" of `self.plan[name]` and `self.plan.get(name)`; empty where an entry by a literal is meant, or none.
std::string container_in(std::string_view value) {
  const std::size_t end = std::min(value.find('['), value.find(".get("));
  if (end == value.npos) return "";
  const std::string_view container = value.substr(0, end);
  return device_reference(container) == container && !entry_reference(value) ? std::string(container) : std::string();
}

std::optional<std::size_t> index_of(const std::vector<std::string>& parts, std::string_view name) {
  const auto found = std::ranges::find(parts, name);
  if (found == parts.end()) return std::nullopt;
  return static_cast<std::size_t>(found - parts.begin());
}

// "x" of "f(x)", for a call of `function` with whatever it is given.
std::vector<std::string> given_to(std::string_view text, std::string_view function) {
  const auto call = call_text(text);
  return call && call->callee == function ? call->arguments : std::vector<std::string>();
}

// The one of `targets` with a name, in a loop over `through`.
std::optional<TakenOut> taken_of(const std::vector<std::string>& targets, std::size_t place, std::string_view through) {
  constexpr std::string_view kItems = ".items()";
  const bool pairs = targets.size() == 2 && place == 1;
  if (through.ends_with(kItems)) {
    through.remove_suffix(kItems.size());
    return pairs ? std::optional(TakenOut{std::string(through), true}) : std::nullopt;
  }
  if (const auto numbered = given_to(through, "enumerate"); !numbered.empty()) {
    return pairs ? std::optional(TakenOut{numbered.front(), true}) : std::nullopt;
  }
  if (const auto side_by_side = given_to(through, "zip"); !side_by_side.empty()) {
    if (side_by_side.size() != targets.size()) return std::nullopt;
    return TakenOut{unwrapped(side_by_side[place]), true};
  }
  TakenOut taken{unwrapped(through), true};
  if (targets.size() > 1) taken.element = place;
  return taken;
}

// The end of what a loop goes through: its colon, the condition of a comprehension, or the bracket that closes that.
std::string_view loop_source(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    const bool opens = std::string_view("([{").find(text[at]) != std::string_view::npos;
    const bool closes = std::string_view(":)]}").find(text[at]) != std::string_view::npos;
    if (closes || rest.starts_with(" if ") || rest.starts_with(" for ")) return trimmed(text.substr(0, at));
    if (opens) at = closing_of(text, at);
    if (at == text.npos) return {};
  }
  return trimmed(text);
}

}  // namespace

std::optional<TakenOut> taken_by_assignment(std::string_view statement, std::string_view name) {
  const std::size_t equals = equals_of(statement);
  if (equals == statement.npos) return std::nullopt;
  const std::string_view value = trimmed(statement.substr(equals + 1));
  const std::vector<std::string> targets = parts_of_tuple(statement.substr(0, equals));
  const auto place = index_of(targets, name);
  if (!place || !call_text(value)) return std::nullopt;
  TakenOut taken{std::string(value)};
  if (targets.size() > 1) taken.element = place;
  return taken;
}

std::optional<TakenOut> taken_by_loop(std::string_view statement, std::string_view name) {
  constexpr std::string_view kIn = " in ";
  for (std::size_t at = name_in(statement, "for"); at != statement.npos; at = name_in(statement, "for", at + 1)) {
    const std::size_t in = statement.find(kIn, at);
    if (in == statement.npos) return std::nullopt;
    const std::vector<std::string> targets = parts_of_tuple(statement.substr(at + 3, in - at - 3));
    if (const auto place = index_of(targets, name)) {
      return taken_of(targets, *place, loop_source(statement.substr(in + kIn.size())));
    }
  }
  return std::nullopt;
}

std::string device_computed_by(std::string_view call) {
  const auto parts = call_text(call);
  const std::string_view value = parts ? keyword_of(*parts, "device=") : std::string_view();
  const auto computed = call_text(value);
  return computed && !computed->callee.starts_with("torch.") ? std::string(value) : std::string();
}

std::string table_of_device(std::string_view call) {
  const auto parts = call_text(call);
  if (!parts) return "";
  std::string_view value = keyword_of(*parts, "device=");
  if (value.empty() && parts->callee.ends_with(".to") && !parts->arguments.empty()) value = parts->arguments.front();
  constexpr std::string_view kIf = " if ";
  const std::size_t condition = value.find(kIf);
  if (condition == value.npos) return value.ends_with(']') ? container_in(value) : std::string();
  const std::string_view asked = value.substr(condition + kIf.size(), value.find(" else ") - condition - kIf.size());
  const std::size_t in = asked.find(" in ");
  return in != asked.npos ? container_in(trimmed(asked.substr(in + 4))) : std::string();
}

std::vector<int> returns_of(const SourceLines& lines, int first) {
  const int definition = definition_below(lines, first);
  std::vector<int> found;
  if (definition == 0) return found;
  const int end = end_of_function(lines, definition + 1);
  for (int k = definition + 1; k <= end; ++k) {
    const std::string_view text = trimmed(lines[k]);
    if (!text.starts_with(kReturn) && !text.starts_with("yield ")) continue;
    if (enclosing_line(lines, k, "def ") == definition) found.push_back(k);
  }
  return found;
}

std::optional<ValueAt> value_returned(const SourceLines& lines, int definition, std::optional<std::size_t> element) {
  const std::vector<int> returns = returns_of(lines, definition);
  if (returns.size() != 1) return std::nullopt;
  const int line = returns.front();
  const std::string statement = statement_at(lines, line);
  if (!statement.starts_with(kReturn)) return std::nullopt;
  const std::string_view value = trimmed(std::string_view(statement).substr(kReturn.size()));
  std::vector<std::string> parts = parts_of_tuple(value);
  if (!element) return parts.size() == 1 ? std::optional(ValueAt{line, std::string(value)}) : std::nullopt;
  if (parts.size() < 2 || *element >= parts.size()) return std::nullopt;
  return ValueAt{line, std::move(parts[*element])};
}

std::optional<ValueAt> value_put(const SourceLines& lines, std::string_view container, int begin, int end) {
  std::optional<ValueAt> found;
  for (int k = begin; k < end; ++k) {
    if (is_blank(lines[k]) || !mentions_name(lines[k], container)) continue;
    for (ContainerPut& put : puts_in(statement_at(lines, k))) {
      if (put.entries || without_subscripts(put.container) != container) continue;
      if (found) return std::nullopt;
      found = ValueAt{k, std::move(put.value)};
    }
  }
  return found;
}

int definition_called(const SourceLines& lines, int line, std::string_view callee) {
  constexpr std::string_view kSelf = "self.";
  const bool method = callee.starts_with(kSelf);
  if (method) callee.remove_prefix(kSelf.size());
  if (!is_identifier(callee)) return 0;
  const int around = method ? enclosing_line(lines, line, "class ") : 0;
  std::vector<int> found;
  for (int k = 1; k <= lines.count(); ++k) {
    if (is_blank(lines[k]) || function_defined(lines[k]) != callee) continue;
    const int type = enclosing_line(lines, k, "class ");
    if (method && type != 0 && type == around) return k;
    if (method == (type != 0)) found.push_back(k);
  }
  return found.size() == 1 ? found.front() : 0;
}

}  // namespace devsan::hooks
