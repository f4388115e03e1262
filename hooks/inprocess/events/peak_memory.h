// What lives on each device, and on the host, when most of it is in use: by the line that made it and by what it is to
// the program. A step has most in use about its backward, so it is looked at when a backward begins and when it is
// over: outside of every operator and allocator, at most fifty times a second, and only where more is in use than ever
// before.
#pragma once

#include "trace/file_layout.h"

namespace devsan::hooks {

// On the thread that calls autograd's engine, for the outermost call: before it runs.
void look_at_peak_before_backward() noexcept;

// Whether this thread has to do so behind the engine, too.
bool peak_is_watched() noexcept;

// `thread`: the calling one's PyThreadState, if it may take the GIL; otherwise null, and kinds are not known. The
// backward was called at `backward`.
void look_at_peak_after_backward(const void* thread, trace::SiteId backward) noexcept;

}  // namespace devsan::hooks
