// Whose code a frame runs.
#pragma once

#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/python_frames.h"

namespace devsan::hooks {

// Of torch, or of what works for whoever calls it (kTorchCode).
inline bool is_torch_code(const void* frame) noexcept {
  return (code_table.marks(frame_code(frame)) & kTorchCode) != 0;
}

// Not a frame of the interpreter's own making (kNoCode).
inline bool has_code(const void* frame) noexcept {
  return (code_table.marks(frame_code(frame)) & kNoCode) == 0;
}

}  // namespace devsan::hooks
