// A function that is told a device and does not use it: `inputs = as_tensors(graphs, device=self.device)`.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/evidence/evidence.h"
#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"
#include "hooks/inprocess/source/source_files.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxInside = 4;  // functions inside of functions

bool uses(const void* code, const void* name, int depth) {
  const ByteCode byte_code(code);
  if (byte_code.instructions().empty()) return true;  // not understood
  for (const Instruction& one : byte_code.instructions()) {
    if (one.operation == Operation::load_variable && same_name(one.operand, name)) return true;
  }
  const void* constants = code_constants(code);
  for (std::ptrdiff_t k = 0; constants != nullptr && k < size_of(constants); ++k) {
    const void* inner = tuple_entry(constants, k);
    if (inner == nullptr || type_of(inner) != python.code_type) continue;
    if (depth >= kMaxInside || uses(inner, name, depth + 1)) return true;
  }
  return false;
}

// An argument that says a device by its name, and that nothing in the function looks at; null without one.
const void* unused_device(const void* code) {
  for (int k = 0; k < code_named_arguments(code); ++k) {
    const void* name = code_local_name(code, k);
    if (is_name(name, "device") || is_name(name, "dev")) return uses(code, name, 0) ? nullptr : name;
  }
  return nullptr;
}

// The line of a function that makes what it returns: that of the only `return`, or of the first statement that gives
// the variable its value which that names. None where several return something.
std::optional<trace::Position> made_at(SourceFiles& files, const void* code) {
  const trace::Position begin = position_of(code, 0);
  const SourceLines lines(files.whole(begin.file));
  int definition = code_first_line(code);
  while (definition <= lines.count() && !trimmed(lines[definition]).starts_with("def ")) ++definition;
  const int end = end_of_function(lines, definition + 1);
  int found = 0;
  for (int k = definition + 1; k <= end; ++k) {
    if (!trimmed(lines[k]).starts_with("return ") || enclosing_line(lines, k, "def ") != definition) continue;
    if (found != 0) return std::nullopt;
    found = k;
  }
  if (found == 0) return std::nullopt;
  const std::string returned(trimmed(std::string_view(statement_at(lines, found)).substr(7)));
  const auto assigned =
      is_identifier(returned) ? assignments_of(lines, returned, definition + 1, found) : std::vector<int>();
  if (!assigned.empty()) found = assigned.front();
  return position_at(begin.file, found, qualified_function(lines, found));
}

}  // namespace

namespace {

// What gives the operand, or the object it is reached through, its value: the right side of the line that binds its
// variable, or what a call gives to the function that has it as an argument.
std::vector<std::string> sources_of(const Inquiry& inquiry, std::size_t operand) {
  std::vector<std::string> found;
  SourceFiles files;
  for (const trace::EvidenceRecord& one : inquiry.found.records()) {
    if (one.operand != operand) continue;
    const std::string text(runtime.recorder->string(one.text));
    if (one.kind == trace::EvidenceKind::given_at) found.push_back(text);
    if (one.kind != trace::EvidenceKind::bound_at) continue;
    const auto value = assigned_to(statement_at(SourceLines(files.whole(one.at.file)), one.at.line), text);
    if (value) found.push_back(*value);
  }
  return found;
}

// The function that made the operand itself: `def lengths(values, device): return torch.tensor(values)`.
bool find_unused_by_maker(const Inquiry& inquiry, std::size_t operand) {
  const trace::LineageNode node = runtime.recorder->lineage(inquiry.operands[operand].lineage);
  const trace::Position made = runtime.recorder->site(node.site).user;
  if (node.how != trace::How::created || made.file == trace::StringId::none) return false;
  const void* code = code_at(inquiry, made);
  const void* unused = code != nullptr ? unused_device(code) : nullptr;
  if (unused == nullptr) return false;
  inquiry.found.add(trace::EvidenceKind::device_unused_at, operand, made, text_of(unused));
  return true;
}

}  // namespace

void find_unused_device(const Inquiry& inquiry, std::size_t operand) {
  if (find_unused_by_maker(inquiry, operand)) return;
  SourceFiles files;
  for (const std::string& source : sources_of(inquiry, operand)) {
    const auto call = call_text(source);
    if (!call) continue;
    const void* code = only_function(inquiry, std::string_view(call->callee).substr(call->callee.rfind('.') + 1));
    const void* unused = code != nullptr ? unused_device(code) : nullptr;
    const auto at = unused != nullptr ? made_at(files, code) : std::nullopt;
    if (!at) continue;
    inquiry.found.add(trace::EvidenceKind::device_unused_at, operand, *at, text_of(unused));
    return;
  }
}

}  // namespace devsan::hooks
