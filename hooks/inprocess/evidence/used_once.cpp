// What a function has computed, and handed to something that outlives it: `log.update({"grad_norm": norm})`. The
// function has returned by the time that the value is refused; where one line alone uses the variable, that is the one.
// Read from the source.
#include <string>
#include <string_view>

#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/history_source.h"
#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

namespace {

// The only line behind the one that binds a variable on which the function uses it; 0 where there are several.
int only_use(const SourceLines& lines, int line, const std::string& variable) {
  const int definition = enclosing_line(lines, line, "def ");
  const int end = end_of_function(lines, line);
  int found = 0;
  for (int k = definition + 1; k <= end; ++k) {
    const bool binds = k == line || goes_on_to(lines, line, k);
    if (binds || is_blank(lines[k]) || !has_word(lines[k], variable)) continue;
    if (found != 0 || k < line) return 0;
    found = k;
  }
  return found;
}

}  // namespace

void find_used_once(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found) {
  visit_history(operand, [&](const trace::LineageNode& node, const trace::Position& made, const SourceLines& lines) {
    const std::string statement = statement_at(lines, made.line);
    const std::string variable = leading_name(statement);
    const bool binds = !variable.empty() && assigned_to(statement, variable).has_value();
    const int line = binds && enclosing_line(lines, made.line, "def ") != 0 ? only_use(lines, made.line, variable) : 0;
    if (line != 0) {
      found.add(trace::EvidenceKind::used_once_at, index, position_at(made.file, line, qualified_function(lines, line)),
                variable);
    }
    return !binds && node.how == trace::How::derived;
  });
}

}  // namespace devsan::hooks
