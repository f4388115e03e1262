// The interpreter frames of the calling thread, read without the GIL: torch releases it before it calls an operator,
// but the frames below stay as they are until that call returns. Only the calling thread's own frames may be read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hooks/inprocess/interpreter/python_api.h"
#include "trace/file_layout.h"

namespace devsan::hooks {

// Offsets that differ between releases of CPython. `via` is the offset in the object that `current` points to, or -1
// where `current` is the frame itself.
// The first cache line is what every outermost operator reads.
struct alignas(64) FrameLayout {
  int minor = 0;
  bool instruction_index = false;
  std::ptrdiff_t current = 0;  // in PyThreadState
  std::ptrdiff_t via = -1;
  std::ptrdiff_t instruction = 0;  // in the frame: a pointer into the code, or with `instruction_index` an int
  std::ptrdiff_t code = 0;
  std::ptrdiff_t previous = 0;
  std::ptrdiff_t globals = 0;
  std::ptrdiff_t locals = 0;              // the array of fast locals
  std::ptrdiff_t local_names = 0;         // in the code object: tuple of their names; 0 where unknown
  std::ptrdiff_t exception = 0;           // in PyThreadState: _PyErr_StackItem*
  std::ptrdiff_t exception_value = 0;     // in _PyErr_StackItem
  std::ptrdiff_t exception_previous = 0;  // in _PyErr_StackItem
};

extern FrameLayout frame_layout;

// Takes the layout of the running interpreter's release; false where it is not known. check_frame_layout() comes next.
bool choose_frame_layout() noexcept;

// The word of a thread's state that is another one while Python code runs that an operator called: the current frame,
// or until 3.12 the C frame that holds it.
inline const void* const* frame_word(const void* thread) noexcept {
  return reinterpret_cast<const void* const*>(static_cast<const char*>(thread) + frame_layout.current);
}

// The frame that a value of that word stands for, while it runs or is waited for.
inline const void* frame_in_word(const void* word) noexcept {
  return frame_layout.via >= 0 ? field<const void*>(word, frame_layout.via) : word;
}

inline const void* current_frame(const void* thread) noexcept {
  return frame_in_word(field<const void*>(thread, frame_layout.current));
}

// Shows `visit` the state of each thread of the interpreter but `thread`, PyThreadStates both, until it returns false.
// With the GIL; without it those threads stand still.
template <class Visit>
void for_other_thread_states(const void* thread, const Visit& visit) {
  constexpr int kMaxThreads = 256;
  void* const interpreter = python.PyThreadState_GetInterpreter(const_cast<void*>(thread));
  void* other = python.PyInterpreterState_ThreadHead(interpreter);
  for (int threads = 0; other != nullptr && threads < kMaxThreads; ++threads) {
    if (other != thread && !visit(static_cast<const void*>(other))) return;
    other = python.PyThreadState_Next(other);
  }
}

// The same with their current frames.
template <class Visit>
void for_other_threads(const void* thread, const Visit& visit) {
  for_other_thread_states(thread, [&visit](const void* other) { return visit(current_frame(other)); });
}

// 3.14 tags the low bits of references in frames.
inline const void* frame_reference(const void* frame, std::ptrdiff_t offset) noexcept {
  return reinterpret_cast<const void*>(field<std::uintptr_t>(frame, offset) & ~std::uintptr_t{7});
}
inline const void* frame_code(const void* frame) noexcept {
  return frame_reference(frame, frame_layout.code);
}
inline const void* frame_previous(const void* frame) noexcept {
  return field<const void*>(frame, frame_layout.previous);
}

// Whether an exception is being handled, or is on its way through a `finally`, on the calling thread.
bool exception_in_flight(const void* thread) noexcept;

// Offsets of members of code objects, read off the type itself.
struct CodeMembers {
  std::ptrdiff_t filename = 0;
  std::ptrdiff_t name = 0;
  std::ptrdiff_t qualified_name = 0;  // 0 before 3.11
  std::ptrdiff_t first_line = 0;
  std::ptrdiff_t instructions = 0;
};
extern CodeMembers code_members;

// The running instruction of a frame, by an address in its code object: no other living code object has it.
inline std::uintptr_t instruction_address(const void* frame) noexcept {
  if (frame_layout.instruction_index) [[unlikely]] {
    return reinterpret_cast<std::uintptr_t>(frame_code(frame)) +
           static_cast<std::uintptr_t>(field<int>(frame, frame_layout.instruction) * 2);
  }
  return field<std::uintptr_t>(frame, frame_layout.instruction);
}

// The byte offset of that instruction in the frame's code.
inline int frame_instruction(const void* frame, const void* code) noexcept {
  const std::ptrdiff_t start = frame_layout.instruction_index ? 0 : code_members.instructions;
  return static_cast<int>(instruction_address(frame) - reinterpret_cast<std::uintptr_t>(code) -
                          static_cast<std::uintptr_t>(start));
}

struct CodeLocation {
  std::int32_t line = 0;
  std::int32_t end_line = 0;
  std::int32_t column = -1;
  std::int32_t end_column = -1;
};
CodeLocation code_location(const void* code, int instruction) noexcept;

}  // namespace devsan::hooks
