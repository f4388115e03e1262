// The functions of the program that run: the innermost, and those that wait for it, past what torch puts between.
//
// With the GIL (PythonSection); bounded; runs no code of the program.
#pragma once

#include "trace/file_layout.h"

namespace devsan::hooks {

// The nearest frame of the program at or outside `frame`; null without one.
const void* program_frame(const void* frame) noexcept;
// The one that waits for `frame`.
const void* program_caller(const void* frame) noexcept;

// The frame at or outside `frame` of the function that a line stands in; null where that does not run.
const void* program_frame_in(const void* frame, const trace::Position& at) noexcept;

// The call that a frame is in.
trace::Position waits_at(const void* frame) noexcept;

}  // namespace devsan::hooks
