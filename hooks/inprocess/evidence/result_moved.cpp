// What works on the host, and whose result goes to the accelerator behind it: `ids = tokenizer(text)`, and
// `ids = ids.to(device)` in the caller; or `rows = table[picked]` itself, and `return rows.to(device)`. What that is
// given does not belong on the accelerator.
#include <optional>
#include <string>

#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/waiting_calls.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_moves.h"
#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxFrames = 4;

// Whether a statement computes with a moved copy of a variable: `self.model(ids.to(self.device))`.
bool uses_moved(std::string_view statement, const std::string& variable) {
  for (const std::string move : {".to(", ".cuda("}) {
    const std::size_t at = statement.find(variable + move);
    if (at == statement.npos || name_in(statement, variable, at) != at) continue;
    const std::size_t end = closing_of(statement, at + variable.size() + move.size() - 1);
    if (end != statement.npos && moves_to_accelerator(statement.substr(at, end + 1 - at))) return true;
  }
  return false;
}

// The line behind a call, in the same function, that moves the first of the variables which the call gives a value.
std::optional<trace::Position> moved_behind(const SourceLines& lines, const trace::Position& call) {
  const std::string statement = statement_at(lines, call.line);
  const std::string variable = leading_name(statement);
  if (variable.empty() || trimmed(statement).find(" = ") == std::string_view::npos) return std::nullopt;
  const int end = end_of_function(lines, call.line) + 1;
  for (const int line : assignments_of(lines, variable, end_of_statement(lines, call.line) + 1, end)) {
    const std::string value = assigned_to(statement_at(lines, line), variable).value_or("");
    if (!has_word(value, variable)) return std::nullopt;
    if (moves_to_accelerator(value)) return position_at(call.file, line, qualified_function(lines, line));
  }
  for (int line = end_of_statement(lines, call.line) + 1; line < end; ++line) {
    if (is_blank(lines[line]) || !uses_moved(statement_at(lines, line), variable)) continue;
    return position_at(call.file, line, qualified_function(lines, line));
  }
  return std::nullopt;
}

}  // namespace

void find_result_moved(const Inquiry& inquiry, std::size_t operand) {
  FileLines files;
  const void* frame = program_frame(inquiry.innermost);
  for (int seen = 0; frame != nullptr && seen < kMaxFrames; ++seen, frame = caller_of(frame)) {
    const trace::Position call = waits_at(frame);
    const auto moved = moved_behind(files.of(call.file), call);
    if (!moved) continue;
    return inquiry.found.add(trace::EvidenceKind::result_moved_at, operand, *moved,
                             leading_name(statement_at(files.of(call.file), call.line)));
  }
}

}  // namespace devsan::hooks
