// Another line of the failing function that reads as the failing one does, and moves what that leaves: `x = x +
// self.attention(h).to(x.device)` beside `x = x + self.mlp(h)`. The same of a line that gave a variable its value.
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/python_twins.h"

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

void add(const Inquiry& inquiry, std::size_t operand, trace::EvidenceKind kind, const trace::Position& beside,
         const SourceLines& lines, const Twin& twin) {
  const std::string text = twin.move.expression + twin.move.move;
  if (text.size() > kLongestText) return;
  inquiry.found.add(kind, operand, position_at(beside.file, twin.line, qualified_function(lines, twin.line)), text);
}

}  // namespace

void find_twin(const Inquiry& inquiry, std::size_t operand) {
  const trace::Position at = runtime.recorder->site(inquiry.site).user;
  const std::string_view name = runtime.recorder->string(inquiry.operands[operand].name);
  FileLines files;
  const SourceLines& lines = files.of(at.file);
  const std::string statement = statement_at(lines, at.line);
  if (name.empty() || !is_simple(statement)) return;
  for (const Twin& twin : moving_twins(lines, at.line)) {
    if (!has_word(twin.move.expression, variable_of(name))) continue;
    return add(inquiry, operand, trace::EvidenceKind::twin_moves_at, at, lines, twin);
  }
}

void find_twin_of_binding(const Inquiry& inquiry, std::size_t operand, const trace::Position& bound) {
  FileLines files;
  const SourceLines& lines = files.of(bound.file);
  if (statement_at(lines, bound.line).find(" = ") == std::string::npos) return;
  const std::vector<Twin> twins = moving_twins(lines, bound.line);
  if (!twins.empty()) {
    add(inquiry, operand, trace::EvidenceKind::binding_twin_at, bound, lines, twins.front());
  }
}

}  // namespace devsan::hooks
