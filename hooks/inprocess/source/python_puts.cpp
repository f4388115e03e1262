#include "hooks/inprocess/source/python_puts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_statements.h"
#include "hooks/inprocess/source/python_text.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

using trace::is_word;
using Puts = std::vector<ContainerPut>;

// Where a text stands in code, outside of strings and, unless `inside`, of brackets; npos where it does not.
std::size_t find_code(std::string_view text, std::string_view part, std::size_t begin, bool inside) {
  for (std::size_t at = begin; at < text.size(); ++at) {
    if (text.substr(at).starts_with(part)) return at;
    int lines = 0;
    const bool string = text[at] == '"' || text[at] == '\'';
    if (!string && (inside || !opens(text[at]))) continue;
    const std::size_t end = string ? end_of_string(text, at, lines) : closing_of(text, at);
    if (end == text.npos) break;
    at = string ? end - 1 : end;
  }
  return text.npos;
}

// The bracket that is closed at `closing`.
std::size_t opening_of(std::string_view text, std::size_t closing) {
  for (std::size_t open = closing; open > 0; --open) {
    if (opens(text[open - 1]) && closing_of(text, open - 1) == closing) return open - 1;
  }
  return text.npos;
}

// "self.pages[name]" of `x = self.pages[name].append(v)`, which ends in front of `end`; empty where no path does.
std::string_view path_before(std::string_view text, std::size_t end) {
  std::size_t begin = end;
  while (begin > 0) {
    const char c = text[begin - 1];
    if (c == ']' || c == ')') {
      begin = opening_of(text, begin - 1);
      if (begin == text.npos) return {};
    } else if (is_word(c) || c == '.') {
      --begin;
    } else {
      break;
    }
  }
  const std::string_view path = text.substr(begin, end - begin);
  const bool named =
      !path.empty() && is_word(path.front()) && std::isdigit(static_cast<unsigned char>(path.front())) == 0;
  return named ? path : std::string_view();
}

std::string_view inside_brackets(std::string_view text) {
  text = trimmed(text);
  const bool whole = !text.empty() && opens(text.front()) && closing_of(text, 0) + 1 == text.size();
  return whole ? trimmed(text.substr(1, text.size() - 2)) : std::string_view();
}

std::vector<std::string> parts_of(std::string_view text) {
  return arguments_at("(" + std::string(text) + ")", 0).value_or(std::vector<std::string>());
}

// "kept[key]" of "kept.setdefault(key, [])".
std::string container_of(std::string_view path) {
  constexpr std::string_view kDefault = ".setdefault";
  if (path == "super()") return "self";
  if (!path.ends_with(')')) return std::string(path);
  const auto call = call_text(path);
  if (!call || !call->callee.ends_with(kDefault) || call->arguments.empty()) return std::string(path);
  return call->callee.substr(0, call->callee.size() - kDefault.size()) + "[" + call->arguments.front() + "]";
}

// Fills in what is put, for one container.
class Filling {
 public:
  Filling(std::string_view path, Puts& puts) : container_(container_of(path)), puts_(puts) {}

  void one(std::string_view key, std::string_view value) { add(key, value, false); }

  // `extend(…)`: a display, a comprehension, or what has the entries in it.
  void all_of(std::string_view values) {
    values = trimmed(values);
    const bool bracket = values.starts_with('[') || values.starts_with('(');
    std::string_view inside = bracket ? inside_brackets(values) : std::string_view();
    if (inside.empty()) inside = find_code(values, " for ", 0, false) != values.npos ? values : std::string_view();
    const std::size_t loop = find_code(inside, " for ", 0, false);
    if (loop != inside.npos) return element(inside.substr(0, loop));
    if (inside.empty()) return bracket ? void() : add("", values, true);
    for (const std::string& each : parts_of(inside)) {
      if (each.starts_with('*')) {
        add("", each.substr(1), true);
      } else {
        element(each);
      }
    }
  }

  // `update(…)` and `|=` of a dictionary, or of a set.
  void merged(std::string_view values) {
    constexpr std::string_view kDict = "dict(";
    values = trimmed(values);
    if (values.starts_with(kDict) && closing_of(values, kDict.size() - 1) + 1 == values.size()) {
      return named(parts_of(values.substr(kDict.size(), values.size() - kDict.size() - 1)));
    }
    if (!values.starts_with('{')) return all_of(values);
    const std::string_view inside = inside_brackets(values);
    const std::size_t loop = find_code(inside, " for ", 0, false);
    if (loop != inside.npos) return entry(inside.substr(0, loop));
    for (const std::string& each : parts_of(inside)) entry(each);
  }

  // `update(key=v, **more)`.
  void named(const std::vector<std::string>& arguments) {
    for (const std::string& one : arguments) {
      const std::size_t equals = one.find('=');
      const std::string_view name = trimmed(std::string_view(one).substr(0, std::min(equals, one.size())));
      if (one.starts_with("**")) {
        add("", one.substr(2), true);
      } else if (is_identifier(name) && equals != one.npos) {
        add("'" + std::string(name) + "'", one.substr(equals + 1), false);
      } else {
        merged(one);
      }
    }
  }

 private:
  void add(std::string_view key, std::string_view value, bool entries) {
    if (trimmed(value).empty()) return;
    puts_.push_back({container_, std::string(trimmed(key)), std::string(trimmed(value)), entries});
  }

  void element(std::string_view text) { add("", text, false); }

  void entry(std::string_view text) {
    if (text.starts_with("**")) return add("", text.substr(2), true);
    const std::size_t colon = find_code(text, ":", 0, false);
    if (colon == text.npos) return add("", text, false);
    add(text.substr(0, colon), text.substr(colon + 1), false);
  }

  const std::string container_;
  Puts& puts_;
};

// A set has an `add()` and a queue a `put()` that give nothing; what is used is another thing's, as a tensor's sum.
bool stands_alone(std::string_view before, std::string_view behind) {
  constexpr std::array<std::string_view, 4> kWords = {"and", "or", "else", "await"};
  before = trimmed(before);
  behind = trimmed(behind);
  const auto ends = [before](std::string_view word) { return before.ends_with(word); };
  const bool first = before.empty() || std::string_view(":;[").find(before.back()) != std::string_view::npos ||
                     std::ranges::any_of(kWords, ends);
  return first &&
         (behind.empty() || is_word(behind.front()) || std::string_view(")];,").find(behind.front()) != behind.npos);
}

void add_call(std::string_view method, std::string_view path, const std::vector<std::string>& arguments, Puts& puts) {
  constexpr std::array<std::string_view, 5> kSingle = {"append", "appendleft", "add", "put", "put_nowait"};
  Filling filling(path, puts);
  const std::size_t count = arguments.size();
  if (std::ranges::find(kSingle, method) != kSingle.end()) {
    if (count == 1 || (count > 1 && method == "put")) filling.one("", arguments.front());
  } else if (method == "extend" || method == "extendleft") {
    if (count == 1) filling.all_of(arguments.front());
  } else if (method == "insert") {
    if (count == 2) filling.one("", arguments.back());
  } else if (method == "update") {
    const bool keyword =
        count > 0 && is_identifier(std::string_view(arguments.back()).substr(0, arguments.back().find('=')));
    if (count == 1 || keyword || (count > 1 && arguments.back().starts_with("**"))) filling.named(arguments);
  } else if (count == 2) {  // setdefault, __setitem__
    filling.one(arguments.front(), arguments.back());
  }
}

void add_calls(std::string_view text, Puts& puts) {
  constexpr std::array<std::string_view, 11> kMethods = {"append",     "appendleft", "add",        "put",
                                                         "put_nowait", "extend",     "extendleft", "insert",
                                                         "update",     "setdefault", "__setitem__"};
  for (std::size_t dot = find_code(text, ".", 0, true); dot != text.npos; dot = find_code(text, ".", dot + 1, true)) {
    std::size_t open = dot + 1;
    while (open < text.size() && is_word(text[open])) ++open;
    const std::string_view method = text.substr(dot + 1, open - dot - 1);
    if (open == text.size() || text[open] != '(' || std::ranges::find(kMethods, method) == kMethods.end()) continue;
    const std::string_view path = path_before(text, dot);
    const auto arguments = arguments_at(text, open);
    if (path.empty() || path == "torch" || !arguments) continue;
    const std::string_view before = text.substr(0, static_cast<std::size_t>(path.data() - text.data()));
    const bool strict = method == "add" || method == "put";
    if (strict && !stands_alone(before, text.substr(closing_of(text, open) + 1))) continue;
    add_call(method, path, *arguments, puts);
  }
}

// "kept" and "key" of the target `kept[key]`.
void add_target(std::string_view target, std::string_view value, Puts& puts) {
  if (!target.ends_with(']')) return;
  const std::size_t open = opening_of(target, target.size() - 1);
  if (open == target.npos || open == 0 || path_before(target, open).size() != open) return;
  if (target.substr(0, open).ends_with(')')) return;  // of what a call gives
  Filling(target.substr(0, open), puts).one(target.substr(open + 1, target.size() - open - 2), value);
}

// `[a]` and `(a,)`, which an operator joins to a list; what brackets hold together is a number like any other.
bool is_sequence(std::string_view value) {
  const std::string_view inside = inside_brackets(value);
  return !inside.empty() && (value.starts_with('[') || find_code(inside, ",", 0, false) != inside.npos);
}

// `kept += [v]` and `kept |= {key: v}`: numbers and masks have these operators, too.
void add_augmented(std::string_view target, char sign, std::string_view value, Puts& puts) {
  target = trimmed(target);
  value = trimmed(value);
  if (path_before(target, target.size()) != target) return;
  Filling filling(target, puts);
  const bool written = is_dict_display(value) || device_reference(value) == value;
  if (sign == '|' && written) return filling.merged(value);
  if (sign != '+') return;
  if (find_code(value, ",", 0, false) != value.npos) return filling.all_of("(" + std::string(value) + ")");
  const bool converted = value.starts_with("list(") || value.starts_with("tuple(");
  if (converted || is_sequence(value)) filling.all_of(value);
}

void add_assignments(std::string_view text, Puts& puts) {
  std::vector<std::string_view> sides;
  for (std::size_t begin = 0;;) {
    const std::size_t equals = find_code(text, "=", begin, false);
    const char before = equals != text.npos && equals > 0 ? text[equals - 1] : ' ';
    const bool compares = equals != text.npos && (text.substr(equals).starts_with("==") || before == '!' ||
                                                  before == '<' || before == '>' || before == ':');
    if (equals == text.npos || compares) {
      sides.push_back(trimmed(text.substr(begin)));
      break;
    }
    if (std::string_view("+-*/|&^%@").find(before) != std::string_view::npos) {
      return add_augmented(text.substr(begin, equals - 1 - begin), before, text.substr(equals + 1), puts);
    }
    sides.push_back(trimmed(text.substr(begin, equals - begin)));
    begin = equals + 1;
  }
  const std::string_view value = sides.back();
  for (std::size_t k = 0; k + 1 < sides.size(); ++k) {
    const std::vector<std::string> targets = parts_of(sides[k]);
    const std::vector<std::string> values = parts_of(value);
    const bool apart = targets.size() > 1 && values.size() == targets.size();
    for (std::size_t n = 0; n < targets.size(); ++n) add_target(targets[n], apart ? values[n] : value, puts);
  }
}

// "kept.append(x)" of "if wanted: kept.append(x)".
std::string_view behind_head(std::string_view statement) {
  constexpr std::array<std::string_view, 8> kHeads = {"if ",    "elif ", "else:", "for ",
                                                      "while ", "with ", "try:",  "finally:"};
  const auto begins = [statement](std::string_view head) { return statement.starts_with(head); };
  const std::size_t colon = std::ranges::any_of(kHeads, begins) ? find_code(statement, ":", 0, false) : statement.npos;
  return colon != statement.npos ? trimmed(statement.substr(colon + 1)) : statement;
}

}  // namespace

std::vector<ContainerPut> puts_in(std::string_view statement) {
  Puts puts;
  statement = behind_head(trimmed(statement));
  add_calls(statement, puts);
  add_assignments(statement, puts);
  return puts;
}

std::string_view without_subscripts(std::string_view container) noexcept {
  return container.substr(0, container.find('['));
}

std::string_view container_name(std::string_view container) noexcept {
  container = without_subscripts(container);
  return container.substr(container.rfind('.') + 1);
}

std::string_view text_of_key(std::string_view key) noexcept {
  const bool quoted = key.size() > 1 && (key.front() == '"' || key.front() == '\'') && key.back() == key.front();
  return quoted ? key.substr(1, key.size() - 2) : std::string_view();
}

}  // namespace devsan::hooks
