// What a function does otherwise beside the line that a value comes from: another branch gives the same variable a
// value that it moves; or the function moves its other arguments, and only computes with this one. The function may
// have returned, so it is read from the source alone.
#include <optional>
#include <string>
#include <string_view>

#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/history_source.h"
#include "hooks/inprocess/source/python_moves.h"
#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

void find_beside_move(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found) {
  visit_history(operand, [&](const trace::LineageNode& node, const trace::Position& made, const SourceLines& lines) {
    const std::string statement = statement_at(lines, made.line);
    const std::string variable = leading_name(statement);
    const auto value = variable.empty() ? std::nullopt : assigned_to(statement, variable);
    if (!value || moves(*value)) return node.how == trace::How::derived;
    const auto tell = [&](trace::EvidenceKind kind, int line, std::string_view text) {
      found.add(kind, index, position_at(made.file, line, qualified_function(lines, line)), text);
    };
    const int branch = moved_in_other_branch(lines, made.line, variable);
    if (branch != 0) tell(trace::EvidenceKind::branch_moves_at, branch, variable);
    const Unmoved beside = moved_beside(lines, made.line, variable, *value);
    if (node.how == trace::How::derived && beside.line != 0) {
      tell(trace::EvidenceKind::arguments_moved_at, beside.line, beside.argument);
    }
    return branch == 0 && beside.line == 0 && node.how == trace::How::derived;
  });
}

}  // namespace devsan::hooks
