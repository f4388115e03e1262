// Turns the calling thread's Python frames into the site of a call: the innermost frame outside torch, and the
// innermost of all. A site is written to the trace once; after that, finding it again is a few compares in a small
// per-thread cache (thread_caches.h).
#pragma once

#include <cstdint>

#include "hooks/inprocess/common/often_read.h"
#include "hooks/inprocess/common/thread_state.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

struct FrameMemo;

// The innermost frame that runs Python code, from `frame` outwards; null where there is none.
const void* innermost_frame(const void* frame) noexcept;

// The site of a call from `frame`, the innermost, which runs torch's code, and from the first frame outside torch.
// `memo`: what is known of the innermost frame.
DEVSAN_OFTEN_RUN CallSite walked_site(ThreadCaches* caches, FrameMemo& memo, const void* frame) noexcept;

// The site of a frame by itself, which is no torch's.
trace::SiteId site_of_frame(const void* frame) noexcept;

// Whether the user's frames of two sites are at one instruction.
bool is_same_line(trace::SiteId one, trace::SiteId other) noexcept;

// What call_site() of thread_caches.h says, past the cache, which it fills.
[[gnu::cold]] CallSite call_site_again(ThreadCaches* caches, const void* frame, bool whole) noexcept;

// Where the interpreter knows no columns, those of torch's own lines are only told on demand: its files are large.
enum class Columns { of_program, of_all };

// The full position of a frame that runs `code`, for stacks; interns its strings.
trace::Position position_of(const void* code, int instruction, Columns columns = Columns::of_program) noexcept;

void reset_sites_after_fork() noexcept;

}  // namespace devsan::hooks
