// Where the device came from that an operand was made on, where the program names no literal: `device=self.device`,
// `.to(device)`, `zeros_like(x)`. An attribute leads to the line that stores it, an argument to the only call of its
// function in the file. Read from the source alone, so that it serves operators of a backward, too.
#include <algorithm>
#include <string>
#include <string_view>

#include "hooks/evidence.h"
#include "hooks/history_source.h"
#include "hooks/python_text.h"
#include "hooks/runtime.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxHops = 5;
constexpr int kMaxCallLines = 8;

// A place in a source file that a device is followed to: an expression in a function.
struct Source {
  int line = 0;
  std::string function;  // with its class, as Python qualifies names
  std::string expression;
};

class Trail {
 public:
  explicit Trail(const SourceLines& lines) : lines_(lines) {}

  // Where the expression gets its value; false where that is not known. One that is known may have no expression: what
  // comes before it is not.
  bool follow(Source& at) const {
    const std::string_view expression = at.expression;
    if (expression.starts_with("self.") && is_identifier(expression.substr(5))) return to_attribute(at);
    return is_identifier(expression) && to_argument(at);
  }

 private:
  std::string_view line(int number) const { return lines_[number]; }

  // The only line in the class that gives the attribute something else than None.
  bool to_attribute(Source& at) const {
    const int type = enclosing_line(lines_, at.line, "class ");
    if (type == 0) return false;
    const std::size_t outer = indentation(line(type));
    int found = 0;
    std::string value;
    for (int k = type + 1; k <= lines_.count(); ++k) {
      const std::string_view text = line(k);
      if (is_blank(text)) continue;
      if (indentation(text) <= outer) break;
      if (text.find(at.expression) == text.npos) continue;
      const auto assigned = assigned_to(statement_at(lines_, k), at.expression);
      if (!assigned || *assigned == "None") continue;
      if (found != 0) return false;
      found = k;
      value = *assigned;
    }
    return found != 0 && arrive(at, found, value);
  }

  // Who asks another value for its device, as `x.device`, has decided: how that value came there is its own history.
  bool arrive(Source& at, int line, std::string_view value) const {
    const bool of_value = value.ends_with(".device") && value != "self.device";
    at = {line, qualified_function(lines_, line), of_value ? std::string() : device_reference(value)};
    return true;
  }

  // The only call of the function in the file, and what it gives for the argument.
  bool to_argument(Source& at) const {
    const int def = enclosing_line(lines_, at.line, "def ");
    if (def == 0) return false;
    const std::string statement = statement_at(lines_, def);
    const auto names = arguments_at(statement, std::min(statement.find('('), statement.size()));
    if (!names) return false;
    const auto is_named = [&](std::string_view name) {
      return name.substr(0, name.find_first_of(":= ")) == at.expression;
    };
    const auto argument = std::ranges::find_if(*names, is_named);
    if (argument == names->end()) return false;
    const int type = enclosing_line(lines_, def, "class ");
    const bool method = type != 0 && (names->front() == "self" || names->front() == "cls");
    if (method && argument == names->begin()) return false;
    std::string called = defined_name(line(def), "def ");
    if (called == "__init__" && type != 0) called = defined_name(line(type), "class ");
    const int call = only_call(called);
    if (call == 0) return false;
    const auto index = static_cast<std::size_t>(argument - names->begin()) - (method ? 1 : 0);
    return arrive(at, call, given(call, called, at.expression, index));
  }

  int only_call(std::string_view name) const {
    int found = 0;
    for (int k = 1; k <= lines_.count(); ++k) {
      if (call_in(line(k), name) == std::string_view::npos) continue;
      if (found != 0) return 0;
      found = k;
    }
    return found;
  }

  // The expression that a call gives for an argument; empty where it is not given, or not to be told.
  std::string given(int call, std::string_view called, std::string_view name, std::size_t index) const {
    const std::string statement = statement_at(lines_, call);
    const std::size_t at = call_in(statement, called);
    if (at == statement.npos) return "";
    const auto values = arguments_at(statement, at + called.size());
    if (!values) return "";
    for (std::size_t k = 0; k < values->size(); ++k) {
      const std::string& value = (*values)[k];
      if (value.starts_with('*')) return "";
      const std::size_t equals = value.find('=');
      const bool keyword = equals != value.npos && is_identifier(std::string_view(value).substr(0, equals));
      if (keyword && std::string_view(value).substr(0, equals) == name) return value.substr(equals + 1);
      if (!keyword && k == index) return value;
    }
    return "";
  }

  const SourceLines& lines_;
};

// The source of a call.
std::string call_at(const SourceLines& lines, const trace::Position& at) {
  if (at.column < 0 || at.end_line < at.line || at.end_line - at.line > kMaxCallLines) return "";
  std::string text;
  for (int k = at.line; k <= at.end_line; ++k) {
    const auto begin = k == at.line ? static_cast<std::size_t>(at.column) : 0;
    const auto end = k == at.end_line ? static_cast<std::size_t>(at.end_column) : lines[k].size();
    if (begin > end || end > lines[k].size()) return "";
    text.append(lines[k].substr(begin, end - begin)).append(k < at.end_line ? " " : "");
  }
  return text;
}

// A `.to()` that is called on what a call returns, and does nothing where that is on the device already.
std::string move_behind(const SourceLines& lines, const trace::Position& at) {
  const std::string_view line = lines[at.end_line];
  const auto end = static_cast<std::size_t>(std::max<int>(at.end_column, 0));
  const std::string_view rest = at.column >= 0 && end <= line.size() ? line.substr(end) : std::string_view();
  if (!rest.starts_with(".to(")) return "";
  return std::string(rest.substr(0, std::min(rest.size(), rest.find(')')) + 1));
}

// What gives the device in one step of a history.
std::string device_given(const SourceLines& lines, const trace::LineageNode& node, const trace::Position& at) {
  const std::string behind = device_expression(move_behind(lines, at));
  if (!behind.empty()) return behind;
  const std::string_view op = runtime.recorder->string(runtime.recorder->operator_name(node.op));
  const bool decides = node.how != trace::How::derived || op.find("_like") != op.npos;
  return decides ? device_expression(call_at(lines, at)) : std::string();
}

}  // namespace

void find_device_source(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found) {
  visit_history(operand, [&](const trace::LineageNode& node, const trace::Position& made, const SourceLines& lines) {
    Source at{made.line, "", device_given(lines, node, made)};
    if (at.expression.empty()) return true;
    const Trail trail(lines);
    for (int hops = 0; hops < kMaxHops; ++hops) {
      const std::string followed = at.expression;
      if (!trail.follow(at)) break;
      found.add(trace::EvidenceKind::device_from, index, position_at(made.file, at.line, at.function), followed);
    }
    return false;
  });
}

}  // namespace devsan::hooks
