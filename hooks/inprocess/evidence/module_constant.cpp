// A constant of a module, `MEAN = torch.tensor([...])`: made when the file is read, for whoever uses it later, on
// whatever device that works. A file that names a device for all it does could have made it there.
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/history_source.h"
#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

namespace {

// "IMAGE_MEAN", as constants are written.
bool is_constant_name(std::string_view name) {
  const auto is_lower = [](unsigned char c) { return std::islower(c) != 0; };
  const auto is_upper = [](unsigned char c) { return std::isupper(c) != 0; };
  return name.size() > 1 && std::ranges::none_of(name, is_lower) && std::ranges::any_of(name, is_upper);
}

// Whether a statement outside of all functions, above a line, gives a variable a device.
bool knows_device(const SourceLines& lines, int line) {
  for (int k = 1; k < line; ++k) {
    const std::string_view text = lines[k];
    const bool global = !is_blank(text) && indentation(text) == 0 && text.find(" = ") != text.npos;
    if (global && (text.find("torch.device(") != text.npos || text.find("cuda") != text.npos)) return true;
  }
  return false;
}

}  // namespace

void find_module_constant(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found) {
  visit_history(operand, [&](const trace::LineageNode& node, const trace::Position& made, const SourceLines& lines) {
    if (node.how != trace::How::created) return true;
    const std::string name = leading_name(lines[made.line]);
    const bool constant = runtime.recorder->string(made.function) == "<module>" && is_constant_name(name) &&
                          assigned_to(statement_at(lines, made.line), name) && !knows_device(lines, made.line);
    if (constant) found.add(trace::EvidenceKind::module_constant_at, index, made, name);
    return false;
  });
}

}  // namespace devsan::hooks
