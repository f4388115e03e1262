// What was loaded from a file and is kept as it came: of several lines that store an attribute, the one that takes an
// entry over.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/provenance/large_page.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_loops.h"
#include "hooks/inprocess/source/python_text.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxVariables = 3;

// The newest step of what is kept, which the operand is or was computed from, is how torch.load() makes what it reads:
// nothing was done with it since.
bool is_as_loaded(const Inquiry& inquiry, std::size_t operand) {
  const trace::LineageNode node = runtime.recorder->lineage(inquiry.kept_history(operand));
  if (node.how != trace::How::created) return false;
  const std::string_view file = runtime.recorder->string(runtime.recorder->site(node.site).innermost.file);
  return file.ends_with("/torch/_utils.py") || file.ends_with("/torch/serialization.py");
}

// "self.best" of `self.count, self.best = …`, whatever object has the attribute `name`; empty without one.
std::string target_with(std::string_view statement, const std::string& name) {
  const std::string attribute = "." + name;
  std::size_t at = statement.find(attribute);
  while (at != statement.npos && at + attribute.size() < statement.size() &&
         trace::is_word(statement[at + attribute.size()])) {
    at = statement.find(attribute, at + 1);
  }
  if (at == statement.npos) return "";
  const std::size_t begin = trace::begin_of_path(statement, at);
  return std::string(statement.substr(begin, at + attribute.size() - begin));
}

// "state" of `state["best"]`, `list(state["best"])`, `state["loop"].get("best")` and `state.pop("best") if state else
// None`; empty for what is more than to take an entry.
std::string container_of_entry(std::string_view value) {
  const std::string itself = unwrapped(trimmed(value.substr(0, value.find(" if "))));
  value = itself;
  const std::size_t begin = std::min(value.find_first_of("[."), value.size());
  const std::string container(value.substr(0, begin));
  if (begin == value.size() || !is_identifier(container) || container == "self") return "";
  value.remove_prefix(begin);
  while (!value.empty()) {
    if (value.front() == '.') {
      const std::size_t open = std::min(value.find('('), value.size());
      const std::string_view method = value.substr(1, open - 1);
      if (open == value.size() || (method != "get" && method != "pop" && method != "setdefault")) return "";
      value.remove_prefix(open);
    } else if (value.front() != '[') {
      return "";
    }
    const std::size_t end = closing_of(value, 0);
    if (end == value.npos) return "";
    value.remove_prefix(end + 1);
  }
  return container;
}

// Whether a value is the only name of an argument of the function around `line`.
bool is_argument(const SourceLines& lines, int line, const std::string& value) {
  const int definition = enclosing_line(lines, line, "def ");
  return definition != 0 && is_identifier(value) && parameter_of(statement_at(lines, definition), value);
}

// Whether a value is an entry of what the function around `line` is given, or loads; also of a variable that is one.
bool takes_entry(const SourceLines& lines, int line, std::string value, int variables = kMaxVariables) {
  if (variables > 0 && is_identifier(value)) value = only_value_above(lines, line, value);
  const std::string container = container_of_entry(value);
  if (container.empty()) return value.find("load(") != value.npos && value.ends_with(']');
  if (is_argument(lines, line, container)) return true;
  const std::string made = only_value_above(lines, line, container);
  return made.find("load(") != made.npos || (variables > 0 && takes_entry(lines, line, made, variables - 1));
}

// The only one of several lines whose value for the attribute is of a kind; none where several have such a one, which
// clears `none`, as one does.
template <class Takes>
std::optional<trace::Position> only_taking(const std::vector<Candidate>& candidates, const std::string& name,
                                           bool& none, Takes takes) {
  FileLines files;
  std::optional<trace::Position> found;
  for (const Candidate& one : candidates) {
    const SourceLines& lines = files.of(one.at.file);
    const std::string statement = statement_at(lines, one.at.line);
    const std::string target = target_with(statement, name);
    const auto value = target.empty() ? std::nullopt : assigned_to(statement, target);
    if (!value || !takes(lines, one.at.line, *value)) continue;
    none = false;
    if (found && !same_line(*found, one.at)) return std::nullopt;
    found = one.at;
  }
  return found;
}

}  // namespace

std::optional<trace::Position> taken_as_loaded(const Inquiry& inquiry, std::size_t operand,
                                               const std::vector<Candidate>& candidates, const void* name) {
  if (candidates.empty() || !is_as_loaded(inquiry, operand)) return std::nullopt;
  bool none = true;
  const auto entry = only_taking(candidates, text_of(name), none, [](const SourceLines& lines, int line, auto value) {
    return takes_entry(lines, line, std::move(value));
  });
  return none ? only_taking(candidates, text_of(name), none, is_argument) : entry;
}

}  // namespace devsan::hooks
