// What a line puts into an object or a container as it is, beside what is moved, and where that got its value in the
// same function. Read from the source of that function.
#include <algorithm>
#include <string>
#include <string_view>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"
#include "trace/function_names.h"

namespace devsan::hooks {

namespace {

// The function that moves something, by the name that a call of it has: "move" of `def move(x):` and of
// `move = lambda x: …`.
std::string called_name(const SourceLines& lines, const trace::Position& at) {
  const std::string_view function = runtime.recorder->string(at.function);
  const std::string_view own = trace::own_name(function);
  if (own != "<lambda>") return std::string(own);
  const std::string statement = statement_at(lines, at.line);
  const std::string name(trimmed(std::string_view(statement).substr(0, statement.find('='))));
  const auto value = is_identifier(name) ? assigned_to(statement, name) : std::nullopt;
  return value && value->starts_with("lambda ") ? name : "";
}

// Where a text calls a function, or a method of the object at hand, by that name: `x.move(…)` is somebody else's.
std::size_t own_call_in(std::string_view text, std::string_view function) {
  const std::size_t at = call_in(text, function);
  if (at == text.npos) return at;
  const std::string_view before = text.substr(0, at);
  return before.ends_with('.') && !before.ends_with("self.") ? text.npos : at;
}

// The value that a statement returns or assigns, without the calls of `function`. Empty where it calls that nowhere.
std::string beside_calls(std::string_view statement, std::string_view function) {
  const std::size_t equals = statement.find(" = ");
  std::string rest(equals != statement.npos ? statement.substr(equals + 3) : statement);
  bool called = false;
  for (std::size_t at = own_call_in(rest, function); at != rest.npos; at = own_call_in(rest, function)) {
    const std::size_t closing = closing_of(rest, at + function.size());
    if (closing == rest.npos) return "";
    rest.erase(at, closing + 1 - at);
    called = true;
  }
  return called ? rest : "";
}

// `{k: move(v) for k, v in batch.items()}` puts what it goes through, and nothing by its name.
bool goes_through(std::string_view statement) {
  const std::size_t loop = statement.find(" for ");
  return loop != statement.npos && statement.find(" in ", loop) != statement.npos;
}

// The variable that the statement on a line binds.
struct Bound {
  int line = 0;
  std::string variable;
};
Bound bound_on(const SourceLines& lines, int line) {
  const int begin = std::max(1, enclosing_line(lines, line, "def "));
  for (int k = begin; k <= line; k = end_of_statement(lines, k) + 1) {
    if (!goes_on_to(lines, k, line)) continue;
    const std::string statement = statement_at(lines, k);
    const std::string name(trimmed(std::string_view(statement).substr(0, statement.find('='))));
    return is_identifier(name) && assigned_to(statement, name) ? Bound{k, name} : Bound{};
  }
  return {};
}

}  // namespace

void find_put_beside(const Inquiry& inquiry, std::size_t operand, const trace::Position& moved) {
  const trace::Position made =
      runtime.recorder->site(runtime.recorder->lineage(inquiry.operands[operand].lineage).site).user;
  if (made.file == trace::StringId::none || made.function == moved.function) return;
  SourceFiles files;
  SourceFiles helpers;
  const SourceLines lines(files.whole(made.file));
  const std::string function = called_name(SourceLines(helpers.whole(moved.file)), moved);
  const Bound bound = bound_on(lines, made.line);
  if (!is_identifier(function) || bound.variable.empty()) return;
  int put = 0;
  const int end = end_of_function(lines, made.line) + 1;
  for (int k = end_of_statement(lines, bound.line) + 1; k < end; k = end_of_statement(lines, k) + 1) {
    if (is_blank(lines[k])) continue;
    const std::string statement = statement_at(lines, k);
    if (assigned_to(statement, bound.variable)) return;
    if (goes_through(statement) || !has_word(beside_calls(statement, function), bound.variable)) continue;
    if (put != 0) return;
    put = k;
  }
  if (put == 0) return;
  inquiry.found.add(trace::EvidenceKind::put_beside_at, operand,
                    position_at(made.file, put, runtime.recorder->string(made.function)), bound.variable);
}

}  // namespace devsan::hooks
