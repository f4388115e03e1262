#include "hooks/inprocess/interpreter/python_frames.h"

#include "hooks/inprocess/common/often_read.h"

namespace devsan::hooks {

DEVSAN_OFTEN_READ constinit FrameLayout frame_layout;
CodeMembers code_members;

namespace {

// From the headers of each release: Include/cpython/pystate.h, Include/internal/pycore_frame.h (pycore_interpframe*.h
// in 3.14) and Include/cpython/code.h; 3.10 from Include/cpython/frameobject.h. check_frame_layout() holds them against
// the running interpreter before anything relies on them.
constexpr FrameLayout kLayouts[] = {
    {.minor = 10,
     .instruction_index = true,
     .current = 24,
     .via = -1,
     .instruction = 96,
     .code = 32,
     .previous = 24,
     .globals = 48,
     .locals = 352,
     .exception = 144,
     .exception_value = 8,
     .exception_previous = 24},
    {.minor = 11,
     .current = 56,
     .via = 8,
     .instruction = 56,
     .code = 32,
     .previous = 48,
     .globals = 8,
     .locals = 72,
     .local_names = 96,
     .exception = 120,
     .exception_value = 0,
     .exception_previous = 8},
    {.minor = 12,
     .current = 56,
     .via = 0,
     .instruction = 56,
     .code = 0,
     .previous = 8,
     .globals = 24,
     .locals = 72,
     .local_names = 96,
     .exception = 104,
     .exception_value = 0,
     .exception_previous = 8},
    {.minor = 13,
     .current = 72,
     .via = -1,
     .instruction = 56,
     .code = 0,
     .previous = 8,
     .globals = 24,
     .locals = 72,
     .local_names = 96,
     .exception = 120,
     .exception_value = 0,
     .exception_previous = 8},
    {.minor = 14,
     .current = 64,
     .via = -1,
     .instruction = 56,
     .code = 0,
     .previous = 8,
     .globals = 24,
     .locals = 80,
     .local_names = 96,
     .exception = 112,
     .exception_value = 0,
     .exception_previous = 8},
};

}  // namespace

CodeLocation code_location(const void* code, int instruction) noexcept {
  CodeLocation at;
  void* object = const_cast<void*>(code);
  if (python.PyCode_Addr2Location != nullptr) {
    python.PyCode_Addr2Location(object, instruction, &at.line, &at.column, &at.end_line, &at.end_column);
  } else {
    at.line = at.end_line = python.PyCode_Addr2Line(object, instruction);
  }
  return at;
}

bool exception_in_flight(const void* thread) noexcept {
  const void* item = field<const void*>(thread, frame_layout.exception);
  for (int depth = 0; item != nullptr && depth < 64; ++depth) {
    const void* value = field<const void*>(item, frame_layout.exception_value);
    if (value != nullptr && value != python.none) return true;
    item = field<const void*>(item, frame_layout.exception_previous);
  }
  return false;
}

bool choose_frame_layout() noexcept {
  for (const FrameLayout& layout : kLayouts) {
    if (layout.minor != python.minor) continue;
    frame_layout = layout;
    return true;
  }
  return false;
}

}  // namespace devsan::hooks
