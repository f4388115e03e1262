// The functions of the program that wait for the running one to return, and what the calls that they are in gave it.
//
// With the GIL (PythonSection); bounded; runs no code of the program. May throw std::bad_alloc.
#pragma once

#include <optional>
#include <string>

#include "hooks/inprocess/source/source_files.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// Whether a frame runs Python code, and is none of the interpreter's own making.
bool runs_python(const void* frame) noexcept;

// The nearest frame of the program at or outside `frame`, through what torch puts between; null without one.
const void* program_frame(const void* frame);
// The one that waits for `frame`.
const void* caller_of(const void* frame);

// The frame at or outside `frame` of the function that a line stands in; null where that does not run.
const void* running_frame(const void* frame, const trace::Position& at);
// Whether the function that a line stands in runs in `frame`, or waits for it.
bool is_running(const void* frame, const trace::Position& at);

// The call that a frame is in.
trace::Position waits_at(const void* frame);

// What a call gives for an argument of the function that runs.
struct Handed {
  trace::Position at;
  std::string text;
};
// None where the text of the call that `caller` is in does not tell.
std::optional<Handed> given_by(SourceFiles& files, const void* caller, const void* frame, const std::string& name);

}  // namespace devsan::hooks
