// The slow path: operands of different devices met, or PyTorch refused them. What is known at that moment goes to the
// trace: operands with their names and histories, the Python stack, and the source lines.
//
// Nothing here changes what the program sees. Python's objects are looked at only where the thread is about to take the
// GIL anyway.
#pragma once

#include <string_view>

#include "hooks/inprocess/common/thread_state.h"
#include "hooks/torch_bridge/operands.h"

namespace devsan::hooks {

class OperandList;

// PyTorch took operands of different devices. Counted per site; the first one of a site is kept with all details.
void record_allowed(ThreadState& state, trace::OperatorId op, const ArgumentsView& arguments,
                    const void* caller) noexcept;
void record_allowed(ThreadState& state, trace::OperatorId op, OperandList& operands, const void* caller) noexcept;

// An exception leaves an outermost operator. Kept when PyTorch's complaint was about devices.
void record_raised(ThreadState& state, trace::OperatorId op, const ArgumentsView& arguments,
                   const void* caller) noexcept;
// The same of operands that were listed before the call; an empty list where they are not known.
void record_raised(ThreadState& state, trace::OperatorId op, OperandList& operands, const void* caller) noexcept;

// Whether torch's Python bindings called, from there.
bool is_in_python_bindings(const void* caller) noexcept;

// Whether the GIL may be taken inside an operator that was called from `caller`.
bool may_take_gil(const ThreadState& state, const void* caller) noexcept;

// PyTorch made an error object with this text. Kept at once when no wrapped operator is running on the thread, so that
// calls past the wrappers are not missed.
void note_error(std::string_view message) noexcept;

// An exception that torch's own Python code has raised, without an operator, has left all frames: those from
// `innermost` outwards, in the layout of running ones (TracebackFrames). Kept when `message` is a complaint about
// devices. Busy, and with the GIL (PythonSection).
void record_left(ThreadState& state, std::string_view message, const void* innermost, OperandList& operands) noexcept;

// No frame of the thread catches the exception that it has just thrown, so that the process ends at once. Kept when
// that is a complaint about devices that an operator made.
void note_uncaught(ThreadState& state) noexcept;

// At a later operator of a thread that had raised: marks the finding when the program has caught the exception.
[[gnu::cold]] void notice_handled(ThreadState& state) noexcept;

}  // namespace devsan::hooks
