#include "hooks/inprocess/evidence/waiting_calls.h"

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"
#include "hooks/inprocess/source/python_calls.h"
#include "hooks/inprocess/source/python_text.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxFrames = 24;

// "def attend(self, q, mask=None):", below its decorators.
std::string definition_of(SourceFiles& files, const void* code) {
  const SourceLines lines(files.whole(position_of(code, 0).file));
  for (int line = code_first_line(code); line <= lines.count(); ++line) {
    std::string_view text = lines[line];
    text.remove_prefix(indentation(text));
    if (text.starts_with("def ") || text.starts_with("async def ")) return statement_at(lines, line);
    if (!is_blank(text) && !text.starts_with('@') && line > code_first_line(code) + kMaxFrames) break;
  }
  return "";
}

}  // namespace

bool runs_python(const void* frame) noexcept {
  const void* code = frame_code(frame);
  return code != nullptr && type_of(code) == python.code_type && (code_table.marks(code) & kNoCode) == 0;
}

const void* program_frame(const void* frame) {
  for (int depth = 0; frame != nullptr && depth < kMaxFrames; ++depth, frame = frame_previous(frame)) {
    if ((code_table.marks(frame_code(frame)) & (kTorchCode | kNoCode)) == 0) return frame;
  }
  return nullptr;
}

const void* caller_of(const void* frame) {
  return program_frame(frame_previous(frame));
}

const void* running_frame(const void* frame, const trace::Position& at) {
  for (int calls = 0; frame != nullptr && calls < kMaxFrames; ++calls, frame = caller_of(frame)) {
    const trace::Position waits = waits_at(frame);
    if (waits.file == at.file && waits.function == at.function) return frame;
  }
  return nullptr;
}

bool is_running(const void* frame, const trace::Position& at) {
  return running_frame(frame, at) != nullptr;
}

trace::Position waits_at(const void* frame) {
  const void* code = frame_code(frame);
  return position_of(code, frame_instruction(frame, code));
}

std::optional<Handed> given_by(SourceFiles& files, const void* caller, const void* frame, const std::string& name) {
  const std::string definition = definition_of(files, frame_code(frame));
  const auto parameter = parameter_of(definition, name);
  if (!parameter) return std::nullopt;
  const trace::Position at = waits_at(caller);
  const SourceLines lines(files.whole(at.file));
  const auto call = call_text(code_text(lines, at));
  if (!call) return std::nullopt;
  Given given = given_for(*parameter, *call, is_bound(definition));
  if (given.by != Given::By::value) return std::nullopt;
  return Handed{at, std::move(given.text)};
}

}  // namespace devsan::hooks
