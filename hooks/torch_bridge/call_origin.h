// Who calls an operator that is not called through a wrapper, whose return address would tell.
#pragma once

#include "hooks/inprocess/common/thread_state.h"

namespace devsan::hooks {

// A word that is no frame, and so differs from every frame: with its address as OuterCall::frame_word, the operators
// inside are outermost ones. What a custom operator calls is the user's code, as a Python function's is.
extern const void* const no_frame;

// Whether a running operator only calls this one to do its own work: by a kernel of torch's in Python, or passed on by
// a `__torch_dispatch__`, whoever wrote that. A kernel in Python of the program's own calls operators of its own.
bool is_part_of_outer(const ThreadState& state) noexcept;

// Of the operator that was called from `frame`, the thread's innermost one: an address in torch's Python bindings where
// these made the call, as a wrapper's return address would be; else null. `frame_around`: the frame of the operator
// around it.
const void* caller_of(const ThreadState& state, const void* frame, const void* frame_around) noexcept;

}  // namespace devsan::hooks
