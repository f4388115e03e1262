// What is live on a device that has no memory left: by line, by what it is to the program, and by module.
#pragma once

#include <string_view>

#include "trace/file_layout.h"

namespace devsan::hooks {

// Writes it to the trace, for a meeting that has kOutOfMemory. `thread`: the calling thread's PyThreadState, if it may
// take the GIL; otherwise null, and nothing is known but lines. To be called when the allocator that had no memory has
// been left. The threads of a backward have no objects to look at: what was live `in_backward` is kept, for the next
// two.
void record_live_memory(const trace::MeetingPayload& meeting, std::string_view message, const void* thread,
                        bool in_backward) noexcept;

// Writes that once more with what it is to the program, by the objects of the thread that called the backward at
// `backward`, which has failed. That thread may take the GIL. Does nothing where nothing was kept.
void explain_live_memory(const void* thread, trace::SiteId backward) noexcept;
bool live_memory_is_unexplained() noexcept;
void forget_unexplained_live_memory() noexcept;

}  // namespace devsan::hooks
