// Ways out of a process that run no destructors. Each leaves its mark in the trace and goes on to the real function.
// All of them may be called in a signal handler, and in a vfork child, which shares its parent's memory: the recorder
// marks nothing there.
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "preload/real_symbol.h"
#include "preload/session.h"

#define DEVSAN_EXPORT extern "C" __attribute__((visibility("default")))

namespace devsan {
namespace {

using trace::CloseMark;

constinit RealSymbol g_exit_now("_exit");
constinit RealSymbol g_exit_now_c99("_Exit");
constinit RealSymbol g_quick_exit("quick_exit");
constinit RealSymbol g_execve("execve");
constinit RealSymbol g_execv("execv");
constinit RealSymbol g_execvp("execvp");
constinit RealSymbol g_execvpe("execvpe");
constinit RealSymbol g_fexecve("fexecve");
constinit RealSymbol g_execveat("execveat");

void mark(CloseMark mark) noexcept {
  if (!recorder().active()) return;
  const int saved_errno = errno;
  recorder().close(mark);
  errno = saved_errno;
}

[[noreturn]] void leave(RealSymbol& function, int status) noexcept {
  status = status_at_end(status);
  recorder().note_exit_status(status);
  mark(CloseMark::quick_exited);
  if (auto* real = function.as<void(int)>()) real(status);
  for (;;) syscall(SYS_exit_group, status);
}

// Comes back only when the new program could not be started.
template <typename... Arguments>
int execute(RealSymbol& function, Arguments... arguments) noexcept {
  auto* real = function.as<int(Arguments...)>();
  if (real == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  mark(CloseMark::executed);
  const int result = real(arguments...);
  mark(CloseMark::open);
  return result;
}

using Environment = char* const*;

}  // namespace
}  // namespace devsan

DEVSAN_EXPORT void _exit(int status) {
  devsan::leave(devsan::g_exit_now, status);
}
DEVSAN_EXPORT void _Exit(int status) noexcept {
  devsan::leave(devsan::g_exit_now_c99, status);
}
DEVSAN_EXPORT void quick_exit(int status) noexcept {
  devsan::leave(devsan::g_quick_exit, status);
}

DEVSAN_EXPORT int execve(const char* path, char* const argv[], char* const envp[]) noexcept {
  return devsan::execute(devsan::g_execve, path, argv, envp);
}

DEVSAN_EXPORT int execv(const char* path, char* const argv[]) noexcept {
  return devsan::execute(devsan::g_execv, path, argv);
}

DEVSAN_EXPORT int execvp(const char* file, char* const argv[]) noexcept {
  return devsan::execute(devsan::g_execvp, file, argv);
}

DEVSAN_EXPORT int execvpe(const char* file, char* const argv[], char* const envp[]) noexcept {
  return devsan::execute(devsan::g_execvpe, file, argv, envp);
}

DEVSAN_EXPORT int fexecve(int file, char* const argv[], char* const envp[]) noexcept {
  return devsan::execute(devsan::g_fexecve, file, argv, envp);
}

DEVSAN_EXPORT int execveat(int directory, const char* path, char* const argv[], char* const envp[],
                           int flags) noexcept {
  return devsan::execute(devsan::g_execveat, directory, path, argv, envp, flags);
}

// The forms with a list of arguments: the list becomes an array on the stack, as in the C library. The one with an
// environment has it behind the null that ends the list.
#define DEVSAN_COLLECT_ARGUMENTS(first, after_null)                                 \
  va_list list;                                                                     \
  va_start(list, first);                                                            \
  std::size_t count = 1;                                                            \
  while (va_arg(list, char*) != nullptr) ++count;                                   \
  va_end(list);                                                                     \
  auto** argv = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*))); \
  argv[0] = const_cast<char*>(first);                                               \
  va_start(list, first);                                                            \
  for (std::size_t i = 1; i <= count; ++i) argv[i] = va_arg(list, char*);           \
  after_null;                                                                       \
  va_end(list)

DEVSAN_EXPORT int execl(const char* path, const char* first, ...) noexcept {
  DEVSAN_COLLECT_ARGUMENTS(first, );
  return devsan::execute(devsan::g_execve, path, static_cast<devsan::Environment>(argv),
                         static_cast<devsan::Environment>(environ));
}

DEVSAN_EXPORT int execlp(const char* file, const char* first, ...) noexcept {
  DEVSAN_COLLECT_ARGUMENTS(first, );
  return devsan::execute(devsan::g_execvpe, file, static_cast<devsan::Environment>(argv),
                         static_cast<devsan::Environment>(environ));
}

DEVSAN_EXPORT int execle(const char* path, const char* first, ...) noexcept {
  DEVSAN_COLLECT_ARGUMENTS(first, auto* environment = va_arg(list, char**));
  return devsan::execute(devsan::g_execve, path, static_cast<devsan::Environment>(argv),
                         static_cast<devsan::Environment>(environment));
}
