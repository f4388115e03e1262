#include "hooks/inprocess/snapshot/program_frames.h"

#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/provenance/sites.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxWaiting = 24;

}  // namespace

const void* program_frame(const void* frame) noexcept {
  for (int depth = 0; frame != nullptr && depth < kMaxWaiting; ++depth, frame = frame_previous(frame)) {
    if ((code_table.marks(frame_code(frame)) & (kTorchCode | kNoCode)) == 0) return frame;
  }
  return nullptr;
}

const void* program_caller(const void* frame) noexcept {
  return program_frame(frame_previous(frame));
}

const void* program_frame_in(const void* frame, const trace::Position& at) noexcept {
  for (int calls = 0; frame != nullptr && calls < kMaxWaiting; ++calls, frame = program_caller(frame)) {
    const trace::Position waits = waits_at(frame);
    if (waits.file == at.file && waits.function == at.function) return frame;
  }
  return nullptr;
}

trace::Position waits_at(const void* frame) noexcept {
  const void* code = frame_code(frame);
  return position_of(code, frame_instruction(frame, code));
}

}  // namespace devsan::hooks
