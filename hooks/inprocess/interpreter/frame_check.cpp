#include "hooks/inprocess/interpreter/frame_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"

namespace devsan::hooks {

namespace {

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

bool learn_text() noexcept {
  void* text = python.PyUnicode_FromString("devsan");
  if (text == nullptr) return false;
  const bool learnt = learn_text_layout(text);
  python.Py_DecRef(text);
  return learnt;
}

// Asks the kernel whether memory can be read: a wrong layout must not crash the program that is being checked.
class MemoryProbe {
 public:
  MemoryProbe() noexcept { ready_ = ::pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) == 0; }
  ~MemoryProbe() {
    if (ready_) ::close(pipe_[0]), ::close(pipe_[1]);
    errno = saved_errno_;
  }
  MemoryProbe(const MemoryProbe&) = delete;
  MemoryProbe& operator=(const MemoryProbe&) = delete;
  bool ready() const noexcept { return ready_; }
  // A pointer, or what is as long, at an offset.
  bool readable(const void* object, std::ptrdiff_t offset) noexcept {
    constexpr ssize_t kSize = sizeof(void*);
    char back[kSize];
    return ::write(pipe_[1], static_cast<const char*>(object) + offset, kSize) == kSize &&
           ::read(pipe_[0], back, kSize) == kSize;
  }

 private:
  const int saved_errno_ = errno;
  int pipe_[2];
  bool ready_;
};

bool readable_frame(MemoryProbe& probe, const void* frame) noexcept {
  return probe.readable(frame, frame_layout.instruction) && probe.readable(frame, frame_layout.code) &&
         probe.readable(frame, frame_layout.previous);
}

bool readable_item(MemoryProbe& probe, const void* item) noexcept {
  return probe.readable(item, frame_layout.exception_value) && probe.readable(item, frame_layout.exception_previous);
}

// The next frame from `frame` on that runs `code`. Between two Python frames there may be shims of the interpreter's
// own.
const void* find_frame(MemoryProbe& probe, const void* frame, const void* code) noexcept {
  for (int skipped = 0; skipped < 4; ++skipped) {
    if (frame == nullptr || !readable_frame(probe, frame)) return nullptr;
    if (frame_code(frame) == code) return frame;
    frame = frame_previous(frame);
  }
  return nullptr;
}

// How many frames there were to compare, and how many of them stand at the line that the interpreter says.
struct Comparison {
  bool same_code = true;  // in all of them
  int frames = 0;
  int same_lines = 0;
};

// Walks the frames both ways, ours and the interpreter's own, and compares code and line of each.
Comparison compare_frames(MemoryProbe& probe, void* thread, const void* frame) noexcept {
  constexpr int kFramesCompared = 16;
  Comparison found;
  void* object = python.PyThreadState_GetFrame(thread);
  for (; object != nullptr && found.same_code && found.frames < kFramesCompared; ++found.frames) {
    void* code = python.PyFrame_GetCode(object);
    frame = find_frame(probe, frame, code);
    found.same_code = frame != nullptr;
    if (frame != nullptr) {
      const int line = code_location(code, frame_instruction(frame, code)).line;
      if (line == python.PyFrame_GetLineNumber(object)) ++found.same_lines;
      frame = frame_previous(frame);
    }
    python.Py_DecRef(code);
    void* back = python.PyFrame_GetBack(object);
    python.Py_DecRef(object);
    object = back;
  }
  if (object != nullptr) python.Py_DecRef(object);
  return found;
}

LayoutVerdict check_frames(MemoryProbe& probe, void* thread) noexcept {
  const auto* word = field<const void*>(thread, frame_layout.current);
  if (frame_layout.via >= 0 && !probe.readable(word, frame_layout.via)) return LayoutVerdict::wrong;
  const Comparison found = compare_frames(probe, thread, frame_in_word(word));
  if (!found.same_code) return LayoutVerdict::wrong;
  if (found.frames == 0) return LayoutVerdict::undecided;
  if (found.same_lines == found.frames) return LayoutVerdict::right;
  // A frame that a debugger is looking at says the line that it was stopped at.
  return found.same_lines == 0 ? LayoutVerdict::wrong : LayoutVerdict::undecided;
}

// What the thread is handling as the interpreter says it: the innermost exception; null for none.
const void* handled_exception() noexcept {
  void* exception[3] = {};
  python.PyErr_GetExcInfo(&exception[0], &exception[1], &exception[2]);
  const void* value = exception[1];
  for (void* part : exception) {
    if (part != nullptr) python.Py_DecRef(part);
  }
  return value != python.none ? value : nullptr;
}

// The thread's own item is embedded in its state.
bool is_own_item(const void* thread, const void* item) noexcept {
  constexpr std::uintptr_t kThreadBytes = 4096;
  const auto begin = reinterpret_cast<std::uintptr_t>(thread);
  const auto at = reinterpret_cast<std::uintptr_t>(item);
  return at > begin && at < begin + kThreadBytes && at % alignof(void*) == 0;
}

// A generator or coroutine that runs has an item of its own, embedded in its object, and leads on to the item of who
// resumed it, and so to the thread's own, the last.
LayoutVerdict check_exception_state(MemoryProbe& probe, const void* thread) noexcept {
  constexpr int kMaxItems = 4096;
  const void* const handled = handled_exception();
  const void* found = nullptr;
  const auto* item = field<const void*>(thread, frame_layout.exception);
  for (int depth = 0; depth < kMaxItems; ++depth) {
    if (!readable_item(probe, item)) return LayoutVerdict::wrong;
    const void* value = field<const void*>(item, frame_layout.exception_value);
    const void* previous = field<const void*>(item, frame_layout.exception_previous);
    if (found == nullptr && value != python.none) found = value;
    if (is_own_item(thread, item)) {
      return previous == nullptr && found == handled ? LayoutVerdict::right : LayoutVerdict::wrong;
    }
    item = previous;
  }
  return LayoutVerdict::undecided;
}

}  // namespace

LayoutVerdict check_frame_layout() noexcept {
  void* thread = python.PyGILState_GetThisThreadState();
  if (thread == nullptr || python.PyGILState_Check() == 0) return LayoutVerdict::undecided;
  if (!learn_code_members()) return LayoutVerdict::wrong;
  MemoryProbe probe;
  if (!probe.ready() || !learn_text()) return LayoutVerdict::undecided;
  const LayoutVerdict frames = check_frames(probe, thread);
  return frames == LayoutVerdict::right ? check_exception_state(probe, thread) : frames;
}

}  // namespace devsan::hooks
