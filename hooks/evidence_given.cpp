// Which calls gave a running function the operand that failed in it: from the frames that wait for it, and the text of
// the calls that they are in.
#include <string>

#include "hooks/code_api.h"
#include "hooks/code_table.h"
#include "hooks/evidence.h"
#include "hooks/python_calls.h"
#include "hooks/python_frames.h"
#include "hooks/python_text.h"
#include "hooks/sites.h"
#include "hooks/source_files.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxCalls = 4;
constexpr int kMaxFrames = 24;

// The frame of the program that waits for a call to return, through what torch puts between; null without one.
const void* caller_of(const void* frame) {
  frame = frame_previous(frame);
  for (int depth = 0; frame != nullptr && depth < kMaxFrames; ++depth, frame = frame_previous(frame)) {
    if ((code_table.marks(frame_code(frame)) & (kTorchCode | kNoCode)) == 0) return frame;
  }
  return nullptr;
}

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

struct Handed {
  trace::Position at;
  std::string text;
};

// What the call that `caller` is in gives for an argument of the function that runs in `frame`.
std::optional<Handed> given_by(SourceFiles& files, const void* caller, const void* frame, const std::string& name) {
  const std::string definition = definition_of(files, frame_code(frame));
  const auto parameter = parameter_of(definition, name);
  if (!parameter) return std::nullopt;
  const void* code = frame_code(caller);
  const trace::Position at = position_of(code, frame_instruction(caller, code));
  const SourceLines lines(files.whole(at.file));
  const auto call = call_text(code_text(lines, at));
  if (!call) return std::nullopt;
  Given given = given_for(*parameter, *call, is_bound(definition));
  if (given.by != Given::By::value) return std::nullopt;
  return Handed{at, std::move(given.text)};
}

// Whether a variable of this name was given by whoever called the function.
bool is_argument(const void* code, const std::string& name) {
  for (int k = 0; k < code_named_arguments(code); ++k) {
    if (is_name(code_local_name(code, k), name)) return true;
  }
  return false;
}

}  // namespace

void find_given(const Inquiry& inquiry, std::size_t operand) {
  std::uint32_t at = inquiry.search.sighting(operand).place;
  if (at == kNoPlace) return;
  while (!inquiry.search.is_root(at)) at = inquiry.search.place(at).parent;
  const Place& root = inquiry.search.place(at);
  if (root.frame == nullptr || root.link.kind != LinkKind::local || root.link.name == nullptr) return;
  char buffer[256];
  std::string name(text_of(root.link.name, buffer, sizeof buffer));
  const void* frame = root.frame;
  SourceFiles files;
  for (int calls = 0; calls < kMaxCalls && is_argument(frame_code(frame), name); ++calls) {
    if (name == "self") return;
    const void* caller = caller_of(frame);
    const auto handed = caller != nullptr ? given_by(files, caller, frame, name) : std::nullopt;
    if (!handed) return;
    inquiry.found.add(trace::EvidenceKind::given_at, operand, handed->at, handed->text);
    name = handed->text;
    frame = caller;
  }
}

}  // namespace devsan::hooks
