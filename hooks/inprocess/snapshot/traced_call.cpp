#include "hooks/inprocess/snapshot/traced_call.h"

#include <string_view>

#include "hooks/inprocess/interpreter/byte_code.h"
#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/frame_marks.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/snapshot/named_objects.h"
#include "hooks/inprocess/snapshot/object_members.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxTracedFrames = 4096;  // dynamo needs a dozen for each function that it goes into
constexpr int kMaxInnerFrames = 64;

std::string_view ascii_member(const void* code, std::ptrdiff_t offset) noexcept {
  return text_of(field<const void*>(code, offset), nullptr, 0);
}

bool is_in_file(const void* frame, std::string_view file) noexcept {
  return is_torch_code(frame) && ascii_member(frame_code(frame), code_members.filename).ends_with(file);
}

// The frame that calls one operator on fake tensors: null where the program's own functions come first.
const void* running_frame(const void* frame) noexcept {
  for (int depth = 0; frame != nullptr && depth < kMaxInnerFrames; ++depth, frame = frame_previous(frame)) {
    if (!has_code(frame)) continue;
    if (!is_torch_code(frame)) return nullptr;
    const bool runs = ascii_member(frame_code(frame), code_members.name) == "run_node";
    if (runs && is_in_file(frame, "/torch/_dynamo/utils.py")) return frame;
  }
  return nullptr;
}

bool is_compiling(const void* frame) noexcept {
  return is_in_file(frame, "/torch/_dynamo/convert_frame.py");
}

// What dis.Positions says: the line, the last line, and the two columns; the line alone where that is all there is.
struct Wanted {
  CodeLocation at;
  bool columns = false;
};

Wanted wanted_location(const void* translator, const void* instruction) noexcept {
  Wanted wanted;
  const void* positions = member_of(instruction, "positions");
  int* const parts[] = {&wanted.at.line, &wanted.at.end_line, &wanted.at.column, &wanted.at.end_column};
  wanted.columns = positions != nullptr && is_tuple(positions) && size_of(positions) == 4;
  for (int k = 0; wanted.columns && k < 4; ++k) {
    const void* part = tuple_entry(positions, k);
    wanted.columns = part != nullptr && is_integer(part);
    if (wanted.columns) *parts[k] = static_cast<int>(code_api().PyLong_AsLong(const_cast<void*>(part)));
  }
  if (!wanted.columns) wanted.at.line = number_member_of(translator, "lineno", 0);
  return wanted;
}

bool stands_there(const void* code, int instruction, const Wanted& wanted) noexcept {
  const CodeLocation at = code_location(code, instruction);
  if (at.line != wanted.at.line) return false;
  return !wanted.columns || python.PyCode_Addr2Location == nullptr ||
         (at.end_line == wanted.at.end_line && at.column == wanted.at.column && at.end_column == wanted.at.end_column);
}

// Dynamo counts the bytes of a code that it has cleaned up: its offset is taken where the position says the same, or
// else the last instruction that has this position, for operands come before the operator.
std::optional<int> instruction_of(const void* translator, const void* code) {
  const void* current = member_of(translator, "current_instruction");
  if (current == nullptr) return std::nullopt;
  const Wanted wanted = wanted_location(translator, current);
  const ByteCode byte_code(code);
  std::optional<int> found;
  const int offset = number_member_of(current, "offset", -1);
  for (int at = 0; at < byte_code.size(); at += 2) {
    if (!stands_there(code, at, wanted)) continue;
    if (at == offset) return offset;
    found = at;
  }
  return found;
}

std::optional<TracedFunction> traced_function(const void* translator) {
  const void* code = member_of(translator, "f_code");
  const void* variables = member_of(translator, "symbolic_locals");
  if (code == nullptr || type_of(code) != python.code_type || variables == nullptr || !is_dict(variables)) {
    return std::nullopt;
  }
  const auto instruction = instruction_of(translator, code);
  if (!instruction) return std::nullopt;
  return TracedFunction{translator, code, *instruction};
}

const void* translator_in(const void* frame) {
  if (!is_in_file(frame, "/torch/_dynamo/symbolic_convert.py")) return nullptr;
  const void* self = variable_named(frame, "self");
  return is_instance_of(self, "InstructionTranslatorBase") ? self : nullptr;
}

// The name of a function that dynamo makes of what is left of one, where it had to stop reading; of another as it is.
std::string_view resumed_name(std::string_view name) noexcept {
  constexpr std::string_view kPrefix = "torch_dynamo_resume_in_";
  if (!name.starts_with(kPrefix)) return name;
  name.remove_prefix(kPrefix.size());
  return name.substr(0, name.rfind("_at_"));
}

// What has called the compiled function, past all that torch does between the call and the reading. A function that is
// resumed is called by what was compiled of its beginning: one function to the program.
const void* caller_of(const void* frame, const void* code) noexcept {
  const void* compiler = compiling_frame(frame);
  const void* caller = compiler != nullptr ? frame_previous(compiler) : nullptr;
  const std::string_view name = ascii_member(code, code_members.name);
  const std::string_view file = ascii_member(code, code_members.filename);
  for (const void* beginning = caller; resumed_name(name) != name && beginning != nullptr;) {
    if (has_code(beginning) && !is_torch_code(beginning)) {
      const void* other = frame_code(beginning);
      const std::string_view called = ascii_member(other, code_members.name);
      if (resumed_name(called) != resumed_name(name) || ascii_member(other, code_members.filename) != file) break;
      caller = frame_previous(beginning);
    }
    beginning = frame_previous(beginning);
  }
  return caller;
}

}  // namespace

bool is_in_traced_call(const void* innermost) noexcept {
  return running_frame(innermost) != nullptr;
}

const void* compiling_frame(const void* innermost) noexcept {
  const void* found = nullptr;
  const void* frame = innermost;
  for (int depth = 0; frame != nullptr && depth < kMaxTracedFrames; ++depth, frame = frame_previous(frame)) {
    if (is_compiling(frame)) {
      found = frame;
    } else if (found != nullptr && has_code(frame) && !is_torch_code(frame)) {
      break;
    }
  }
  return found;
}

std::optional<TracedCall> traced_call(const void* innermost) {
  const void* frame = running_frame(innermost);
  if (frame == nullptr || !code_api().complete) return std::nullopt;
  TracedCall call;
  call.node = variable_named(frame, "node");
  if (!is_instance_of(call.node, "Node")) return std::nullopt;
  for (int depth = 0; frame != nullptr && depth < kMaxTracedFrames; ++depth, frame = frame_previous(frame)) {
    if (!has_code(frame)) continue;
    if (!is_torch_code(frame) || is_compiling(frame)) break;
    const void* translator = translator_in(frame);
    if (translator == nullptr || (!call.functions.empty() && call.root() == translator)) continue;
    const auto function = traced_function(translator);
    if (!function) return std::nullopt;
    call.functions.push_back(*function);
  }
  if (call.functions.empty()) return std::nullopt;
  call.caller = caller_of(frame, call.functions.back().code);
  return call;
}

}  // namespace devsan::hooks
