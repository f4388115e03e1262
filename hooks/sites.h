// Turns the calling thread's Python frames into the site of a call: the innermost frame outside torch, and the
// innermost of all. A site is written to the trace once; after that, finding it again is two compares in a small
// per-thread cache.
#pragma once

#include <cstdint>

#include "hooks/code_table.h"
#include "hooks/python_frames.h"
#include "hooks/thread_state.h"
#include "trace/recorder.h"

namespace devsan::hooks {

// An instruction that is being executed, by address: unique among living code objects.
struct FramePosition {
  const void* code = nullptr;
  int instruction = 0;
  // One number for both: instructions lie within their code object.
  std::uintptr_t address() const noexcept {
    return reinterpret_cast<std::uintptr_t>(code) + static_cast<std::uintptr_t>(instruction);
  }
};

struct CallerFrames {
  FramePosition innermost;
  FramePosition user;
  std::uint32_t marks = 0;  // of all frames from the innermost to the user's
};

inline constexpr int kMaxFramesWalked = 48;

// The innermost frame that runs Python code, from `frame` outwards; its marks go to `marks`. Null where there is none.
inline const void* innermost_frame(const void* frame, FramePosition& position, std::uint32_t& marks) noexcept {
  for (int walked = 0; frame != nullptr && walked < kMaxFramesWalked; ++walked) {
    const void* code = frame_code(frame);
    marks = code_table.marks(code);
    if ((marks & kNoCode) == 0) [[likely]] {
      position = {code, frame_instruction(frame, code)};
      return frame;
    }
    frame = frame_previous(frame);
  }
  return nullptr;
}

// Walks from `frame` outwards, at most kMaxFramesWalked frames; without a frame outside torch, `user` is `innermost`.
inline CallerFrames find_caller(const void* frame) noexcept {
  CallerFrames caller;
  frame = innermost_frame(frame, caller.innermost, caller.marks);
  caller.user = caller.innermost;
  if ((caller.marks & kTorchCode) == 0 || frame == nullptr) return caller;
  const std::ptrdiff_t previous = frame_layout.previous;
  const std::ptrdiff_t code_at = frame_layout.code;
  std::uint32_t marks = caller.marks;
  for (int left = kMaxFramesWalked; left != 0; --left) {
    frame = field<const void*>(frame, previous);
    if (frame == nullptr) break;
    const void* code = frame_reference(frame, code_at);
    const std::uint32_t here = code_table.marks(code);
    marks |= here;
    if ((here & (kTorchCode | kNoCode)) == 0) {
      caller.user = {code, frame_instruction(frame, code)};
      break;
    }
  }
  caller.marks = marks;
  return caller;
}

// Only the innermost frame: for operators that make nothing, whose site is wanted for the ring of last operators alone.
inline CallerFrames find_innermost(const void* frame) noexcept {
  CallerFrames caller;
  innermost_frame(frame, caller.innermost, caller.marks);
  caller.user = caller.innermost;
  return caller;
}

// find_site() of thread_caches.h, past the cache, which it fills.
trace::SiteId find_site_again(ThreadCaches* caches, const CallerFrames& caller) noexcept;

// The full position of one frame, for stacks; interns its strings.
trace::Position position_of(const FramePosition& frame) noexcept;

void reset_sites_after_fork() noexcept;

}  // namespace devsan::hooks
