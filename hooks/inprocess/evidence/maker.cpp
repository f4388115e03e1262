// A helper that knows of no device makes a tensor of Python's values: `tokens = tokenize(texts)`, in a method of an
// object that keeps a device and could have moved what it gets.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/call_frames.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/evidence/history_source.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

namespace {

constexpr std::string_view kOwnDevice = "self.device";

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [text](std::string_view part) { return text.find(part) != text.npos; });
}

// Whether a line between two says anything of devices, or moves something.
bool speaks_of_devices(const SourceLines& lines, int begin, int end) {
  for (int k = begin; k <= end; ++k) {
    if (!is_blank(lines[k]) && has_any(lines[k], {"device", "cuda", ".to("})) return true;
  }
  return false;
}

// The lines of a block that begins at `head`.
int end_of(const SourceLines& lines, int head) {
  return end_of_block(lines, head + 1, head);
}

// Whether a line stands in a function whose own text, and whose class's, knows of no device; in no constructor.
bool knows_no_device(const SourceLines& lines, int line) {
  const int definition = enclosing_line(lines, line, "def ");
  if (definition == 0 || defined_name(lines[definition], "def ") == "__init__") return false;
  const int type = enclosing_line(lines, definition, "class ");
  const int outer = type != 0 ? type : definition;
  return !speaks_of_devices(lines, outer, end_of(lines, outer));
}

// Whether a line stands in a method of a class that keeps `self.device`.
bool object_keeps_device(const SourceLines& lines, int line) {
  const int definition = enclosing_line(lines, line, "def ");
  const int type = definition != 0 ? enclosing_line(lines, definition, "class ") : 0;
  for (int k = type + 1; type != 0 && k <= end_of(lines, type); ++k) {
    if (!is_blank(lines[k]) && assigned_to(statement_at(lines, k), kOwnDevice)) return true;
  }
  return false;
}

// Made of what Python has, rather than in the shape of a tensor, which would say a device.
bool is_made_of_python(std::string_view call) {
  return !call.empty() && device_expression(call).empty() &&
         !has_any(call, {".shape", ".size(", "_like(", ".new_", "generator="});
}

}  // namespace

void find_taken_from_maker(const trace::OperandRecord& operand, std::size_t index, EvidenceList& found) {
  visit_history(operand, [&](const trace::LineageNode& node, const trace::Position& made, const SourceLines& lines) {
    if (node.how != trace::How::created) return true;
    if (!is_made_of_python(code_text(lines, made)) || !knows_no_device(lines, made.line)) return false;
    FileLines files;
    for (const trace::Position& call : call_frames(made, node.calls)) {
      if (same_function(call, made) || is_comprehension(call)) continue;
      const SourceLines& caller = files.of(call.file);
      if (object_keeps_device(caller, call.line)) {
        const std::string statement = statement_at(caller, call.line);
        if (!is_identifier(leading_name(statement)) || statement.find(" = ") == std::string::npos) return false;
        found.add(trace::EvidenceKind::taken_from_maker_at, index, call, kOwnDevice);
        return false;
      }
      if (enclosing_line(caller, call.line, "def ") == 0) break;
      if (!knows_no_device(caller, call.line)) return false;
    }
    found.add(trace::EvidenceKind::made_unaware_at, index, made, runtime.recorder->string(made.function));
    return false;
  });
}

}  // namespace devsan::hooks
