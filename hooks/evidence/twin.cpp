// Another line of the failing function that reads as the failing one does, and moves what that leaves: `x = x +
// self.attention(h).to(x.device)` beside `x = x + self.mlp(h)`.
#include <string>
#include <string_view>

#include "hooks/evidence/evidence.h"
#include "hooks/process/runtime.h"
#include "hooks/source/file_lines.h"
#include "hooks/source/python_text.h"
#include "hooks/source/python_twins.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kLongestText = 120;

// "x" of "x.weight[0]".
std::string_view variable_of(std::string_view name) {
  return name.substr(0, name.find_first_of(".[("));
}

bool is_simple(std::string_view statement) {
  return statement.starts_with("return ") || statement.find(" = ") != statement.npos ||
         statement.find("+= ") != statement.npos;
}

}  // namespace

void find_twin(const Inquiry& inquiry, std::size_t operand) {
  const trace::Position at = runtime.recorder->site(inquiry.site).user;
  const std::string_view name = runtime.recorder->string(inquiry.operands[operand].name);
  FileLines files;
  const SourceLines& lines = files.of(at.file);
  const std::string statement = statement_at(lines, at.line);
  if (name.empty() || !is_simple(statement)) return;
  const int definition = enclosing_line(lines, at.line, "def ");
  const int end = end_of_function(lines, at.line);
  for (int line = definition + 1; line <= end; ++line) {
    if (line == at.line || is_blank(lines[line]) || enclosing_line(lines, line, "def ") != definition) continue;
    const auto twin = moved_by_twin(statement, statement_at(lines, line));
    if (!twin || !has_word(twin->expression, variable_of(name))) continue;
    const std::string text = twin->expression + twin->move;
    if (text.size() > kLongestText) return;
    return inquiry.found.add(trace::EvidenceKind::twin_moves_at, operand,
                             position_at(at.file, line, qualified_function(lines, line)), text);
  }
}

}  // namespace devsan::hooks
