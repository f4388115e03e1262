#include "hooks/python/python_frames.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "hooks/process/often_read.h"

namespace devsan::hooks {

DEVSAN_OFTEN_READ constinit FrameLayout frame_layout;
CodeMembers code_members;

namespace {

// From the headers of each release: Include/cpython/pystate.h, Include/internal/pycore_frame.h (pycore_interpframe*.h
// in 3.14) and Include/cpython/code.h; 3.10 from Include/cpython/frameobject.h. learn_frame_layout() holds them against
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

// PyMemberDef: name, type, offset, flags, doc.
constexpr std::ptrdiff_t kMemberSize = 40;
constexpr std::ptrdiff_t kMemberOffset = 16;

std::ptrdiff_t member_offset(const void* type, const char* name) noexcept {
  const char* member = field<const char*>(type, kTypeMembers);
  for (; member != nullptr && field<const char*>(member, 0) != nullptr; member += kMemberSize) {
    if (std::strcmp(field<const char*>(member, 0), name) == 0) return field<std::ptrdiff_t>(member, kMemberOffset);
  }
  return 0;
}

bool learn_code_members() noexcept {
  code_members.filename = member_offset(python.code_type, "co_filename");
  code_members.name = member_offset(python.code_type, "co_name");
  code_members.qualified_name = member_offset(python.code_type, "co_qualname");
  code_members.first_line = member_offset(python.code_type, "co_firstlineno");
  code_members.instructions = field<std::ptrdiff_t>(python.code_type, kTypeBasicSize);
  return code_members.filename != 0 && code_members.name != 0 && code_members.first_line != 0;
}

// Asks the kernel whether memory can be read: a wrong layout must not crash the program that is being checked.
class MemoryProbe {
 public:
  MemoryProbe() noexcept { ready_ = ::pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) == 0; }
  ~MemoryProbe() {
    if (ready_) ::close(pipe_[0]), ::close(pipe_[1]);
  }
  MemoryProbe(const MemoryProbe&) = delete;
  MemoryProbe& operator=(const MemoryProbe&) = delete;
  bool readable(const void* memory, std::size_t size) noexcept {
    char back[128];
    return ready_ && size <= sizeof back && ::write(pipe_[1], memory, size) == static_cast<ssize_t>(size) &&
           ::read(pipe_[0], back, size) == static_cast<ssize_t>(size);
  }

 private:
  int pipe_[2];
  bool ready_;
};

constexpr std::size_t kFrameBytes = 104;

// The next frame from `frame` on that runs `code`. Between two Python frames there may be shims of the interpreter's
// own.
const void* find_frame(MemoryProbe& probe, const void* frame, const void* code) noexcept {
  for (int skipped = 0; skipped < 4; ++skipped) {
    if (frame == nullptr || !probe.readable(frame, kFrameBytes)) return nullptr;
    if (frame_code(frame) == code) return frame;
    frame = frame_previous(frame);
  }
  return nullptr;
}

// Walks the frames both ways, ours and the interpreter's own, and compares code and line of each.
bool agrees_with_interpreter(void* thread) noexcept {
  MemoryProbe probe;
  const auto* holder = field<const char*>(thread, frame_layout.current);
  if (!probe.readable(holder, 16)) return false;
  const void* frame = current_frame(thread);
  void* object = python.PyThreadState_GetFrame(thread);
  bool agrees = object != nullptr;
  for (int compared = 0; object != nullptr && compared < 16; ++compared) {
    void* code = python.PyFrame_GetCode(object);
    frame = find_frame(probe, frame, code);
    agrees = frame != nullptr &&
             code_location(code, frame_instruction(frame, code)).line == python.PyFrame_GetLineNumber(object);
    python.Py_DecRef(code);
    void* back = agrees ? python.PyFrame_GetBack(object) : nullptr;
    python.Py_DecRef(object);
    object = back;
    if (agrees) frame = frame_previous(frame);
  }
  if (object != nullptr) python.Py_DecRef(object);
  return agrees;
}

bool exception_state_is_there(const void* thread) noexcept {
  // Outside generators the thread's own item is used, which is embedded in the thread state.
  const auto item = field<std::uintptr_t>(thread, frame_layout.exception);
  const auto base = reinterpret_cast<std::uintptr_t>(thread);
  return item > base && item < base + 4096 && item % alignof(void*) == 0;
}

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

bool learn_frame_layout(const char** reason) noexcept {
  *reason = "this Python's frames are not laid out as devsan knows them: findings carry no Python lines";
  for (const FrameLayout& layout : kLayouts) {
    if (layout.minor == python.minor) frame_layout = layout;
  }
  void* thread = python.PyGILState_GetThisThreadState();
  if (thread == nullptr || python.PyGILState_Check() == 0 || !learn_code_members()) return false;
  void* frame = python.PyThreadState_GetFrame(thread);
  if (frame == nullptr) return false;
  void* code = python.PyFrame_GetCode(frame);
  const bool text = learn_text_layout(field<void*>(code, code_members.name));
  python.Py_DecRef(code);
  python.Py_DecRef(frame);
  if (!text || !exception_state_is_there(thread) || !agrees_with_interpreter(thread)) return false;
  *reason = nullptr;
  return true;
}

}  // namespace devsan::hooks
