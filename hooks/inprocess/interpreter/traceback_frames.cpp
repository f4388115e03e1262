#include "hooks/inprocess/interpreter/traceback_frames.h"

#include <cstdint>
#include <cstring>

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/made_frames.h"
#include "hooks/inprocess/interpreter/python_frames.h"

namespace devsan::hooks {

namespace {

constexpr int kMaxFrames = 256;

// PyTracebackObject, which has not changed since 3.7, and PyFrameObject::f_frame from 3.11 on.
constexpr std::ptrdiff_t kNext = 16;
constexpr std::ptrdiff_t kFrame = 24;
constexpr std::ptrdiff_t kLastInstruction = 32;
constexpr std::ptrdiff_t kFrameOfObject = 24;

bool is_traceback(const void* object) noexcept {
  return object != nullptr && object != python.none && is_builtin(object, "traceback");
}

// What frames are made of: the frame object itself until 3.10, and what it points to from then on.
const void* frame_behind(const void* frame_object) noexcept {
  return python.minor < 11 ? frame_object : field<const void*>(frame_object, kFrameOfObject);
}

}  // namespace

TracebackFrames::TracebackFrames(const void* traceback) {
  if (!code_api().complete) return;
  for (int depth = 0; is_traceback(traceback) && depth < kMaxFrames; ++depth) {
    const void* original = frame_behind(field<const void*>(traceback, kFrame));
    const void* code = original != nullptr ? frame_code(original) : nullptr;
    if (code != nullptr && type_of(code) == python.code_type) {
      const std::size_t size = size_of_frame(code);
      auto copy = std::make_unique<std::byte[]>(size);
      std::memcpy(copy.get(), original, size);
      write_in_frame(copy.get(), frame_layout.previous, innermost());
      stand_at(copy.get(), code, field<int>(traceback, kLastInstruction));
      copies_.push_back(std::move(copy));
    }
    traceback = field<const void*>(traceback, kNext);
  }
}

}  // namespace devsan::hooks
