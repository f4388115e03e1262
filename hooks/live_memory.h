// What is live on a device that has no memory left: by line, by what it is to the program, and by module.
#pragma once

#include <string_view>

#include "trace/file_layout.h"

namespace devsan::hooks {

// Writes it to the trace, for a meeting that has kOutOfMemory. `thread`: the calling thread's PyThreadState, if it may
// take the GIL; otherwise null, and nothing is known but lines. To be called when the allocator that had no memory has
// been left.
void record_live_memory(const trace::MeetingPayload& meeting, std::string_view message, const void* thread) noexcept;

}  // namespace devsan::hooks
