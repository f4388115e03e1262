#include "hooks/inprocess/interpreter/python_start.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "hooks/inprocess/bridge/left_exception.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/interpreter/code_table.h"
#include "hooks/inprocess/interpreter/command_code.h"
#include "hooks/inprocess/interpreter/frame_check.h"
#include "hooks/inprocess/interpreter/python_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"

namespace devsan::hooks {

namespace {

constexpr char kNotUnderstood[] =
    "this Python's frames are not laid out as devsan knows them: findings carry no Python lines";
constexpr char kNoMoment[] = "this Python's frames could not be checked: findings carry no Python lines";

// Where so many moments told nothing, another one would not.
constexpr int kMaxTries = 64;

std::atomic<bool> decided{false};
std::atomic<bool> asked{false};  // the interpreter, for a moment of its own
std::atomic_flag looking = ATOMIC_FLAG_INIT;
int tries = 0;  // by who has `looking`

// Where torch is, and the code of its Python bindings.
int inspect_object(dl_phdr_info* info, std::size_t, void*) {
  const std::string_view path = info->dlpi_name != nullptr ? info->dlpi_name : "";
  const std::size_t slash = path.rfind('/');
  if (slash == path.npos) return 0;
  const std::string_view name = path.substr(slash + 1);
  const std::string_view library = "lib/";
  if (name == "libtorch_cpu.so" && path.substr(0, slash + 1).ends_with(library)) {
    const std::string_view directory = path.substr(0, slash + 1 - library.size());
    directories.torch[directory.copy(directories.torch, sizeof directories.torch - 1)] = 0;
  }
  if (name != "libtorch_python.so") return 0;
  for (int k = 0; k < info->dlpi_phnum; ++k) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[k];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const char* begin = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    runtime.python_bindings_begin = begin;
    runtime.python_bindings_end = begin + segment.p_memsz;
  }
  return 0;
}

void decide(const char* complaint) noexcept {
  decided.store(true, std::memory_order_release);
  if (complaint == nullptr) return;
  runtime.host->say(complaint);
  runtime.recorder->add_notice(complaint);
}

void begin_reading() noexcept {
  if (!code_table.start(directories.torch)) return decide(kNotUnderstood);
  learn_command_code(current_frame(python.PyGILState_GetThisThreadState()));
  runtime.has_python.store(true, std::memory_order_release);
  decide(nullptr);
  watch_left_exceptions();
}

// With the GIL.
void check_now() noexcept {
  const PythonSection section;
  const LayoutVerdict verdict = check_frame_layout();
  if (verdict == LayoutVerdict::right) return begin_reading();
  if (verdict == LayoutVerdict::wrong) return decide(kNotUnderstood);
  if (++tries == kMaxTries) decide(kNoMoment);
}

int check_when_asked(void*) noexcept {
  asked.store(false, std::memory_order_release);
  look_for_python();
  return 0;
}

// On the main thread, between two instructions of Python.
void ask_interpreter() noexcept {
  if (asked.exchange(true)) return;
  if (python.Py_AddPendingCall(check_when_asked, nullptr) != 0) asked.store(false, std::memory_order_release);
}

// Whether more objects were loaded since the last time.
bool loaded_more() noexcept {
  static unsigned long long known = 0;
  unsigned long long now = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* adds) {
        *static_cast<unsigned long long*>(adds) = info->dlpi_adds;
        return 1;
      },
      &now);
  const bool more = now != known;
  known = now;
  return more;
}

// A process without Python is asked often: by each of its threads.
bool interpreter_is_there() noexcept {
  if (python.Py_IsInitialized != nullptr ? python.Py_IsInitialized() == 0 : !loaded_more()) return false;
  if (python.minor != 0) return interpreter_lives();
  const char* complaint = nullptr;
  const bool found = find_python(&complaint) && choose_frame_layout();
  if (complaint != nullptr) decide(complaint);
  return found && interpreter_lives();
}

void look(bool may_take_gil) noexcept {
  if (!interpreter_is_there()) return;
  const bool runs_python = python.PyGILState_GetThisThreadState() != nullptr;
  if (runs_python && (may_take_gil || python.PyGILState_Check() != 0)) {
    check_now();
  } else {
    ask_interpreter();
  }
}

}  // namespace

void look_for_torch() noexcept {
  if (runtime.python_bindings_begin.load(std::memory_order_relaxed) == nullptr) {
    ::dl_iterate_phdr(inspect_object, nullptr);
  }
}

void look_for_python(bool may_take_gil) noexcept {
  if (decided.load(std::memory_order_acquire) || looking.test_and_set(std::memory_order_acquire)) return;
  if (!decided.load(std::memory_order_relaxed)) look(may_take_gil);
  looking.clear(std::memory_order_release);
}

// It is part of the interpreter's state, which is a variable of the library.
const void* lasting_python_thread() noexcept {
  if (!runtime.has_python || python.minor < 11 || ::getpid() != ::gettid()) return nullptr;
  const void* thread = python.PyGILState_GetThisThreadState();
  Dl_info object;
  return thread != nullptr && ::dladdr(thread, &object) != 0 ? thread : nullptr;
}

}  // namespace devsan::hooks
