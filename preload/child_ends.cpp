// How children end is told to the process that waits for them, and to nobody else: a child that is killed can say
// nothing itself. Each function hands on what the real one says, and notes it. All of them may be called in a signal
// handler.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>

#include "preload/real_symbol.h"
#include "preload/session.h"

#define DEVSAN_EXPORT extern "C" __attribute__((visibility("default")))

namespace devsan {
namespace {

constinit RealSymbol g_wait("wait");
constinit RealSymbol g_waitpid("waitpid");
constinit RealSymbol g_wait3("wait3");
constinit RealSymbol g_wait4("wait4");
constinit RealSymbol g_waitid("waitid");

// A program that starts and fails commands all day does not fill its trace with them.
constexpr int kMaxNoted = 1024;
constinit std::atomic<int> g_noted{0};

void note_end(pid_t pid, int status) noexcept {
  if (pid <= 0 || !recorder().active()) return;
  const bool remarkable = WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 0);
  if (!remarkable || g_noted.fetch_add(1, std::memory_order_relaxed) >= kMaxNoted) return;
  const int saved_errno = errno;
  recorder().add_child_end(static_cast<std::uint32_t>(pid), status);
  errno = saved_errno;
}

// As the other functions tell it.
int status_of(const siginfo_t& info) noexcept {
  if (info.si_code == CLD_EXITED) return (info.si_status & 0xFF) << 8;
  return info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0);
}

// Comes to the program's status, or to one of our own where it wants none.
template <typename Function, typename Call>
pid_t wait_and_note(Function* real, int* status, Call call) {
  int own = 0;
  int* const place = status != nullptr ? status : &own;
  if (real == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  const pid_t pid = call(place);
  note_end(pid, *place);
  return pid;
}

}  // namespace
}  // namespace devsan

using devsan::wait_and_note;

DEVSAN_EXPORT pid_t wait(int* status) {
  auto* real = devsan::g_wait.as<pid_t(int*)>();
  return wait_and_note(real, status, [&](int* place) { return real(place); });
}

DEVSAN_EXPORT pid_t waitpid(pid_t pid, int* status, int options) {
  auto* real = devsan::g_waitpid.as<pid_t(pid_t, int*, int)>();
  return wait_and_note(real, status, [&](int* place) { return real(pid, place, options); });
}

DEVSAN_EXPORT pid_t wait3(int* status, int options, struct rusage* usage) noexcept {
  auto* real = devsan::g_wait3.as<pid_t(int*, int, struct rusage*)>();
  return wait_and_note(real, status, [&](int* place) { return real(place, options, usage); });
}

DEVSAN_EXPORT pid_t wait4(pid_t pid, int* status, int options, struct rusage* usage) noexcept {
  auto* real = devsan::g_wait4.as<pid_t(pid_t, int*, int, struct rusage*)>();
  return wait_and_note(real, status, [&](int* place) { return real(pid, place, options, usage); });
}

DEVSAN_EXPORT int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
  auto* real = devsan::g_waitid.as<int(idtype_t, id_t, siginfo_t*, int)>();
  if (real == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  const int result = real(type, id, info, options);
  // Of a child that is left to be waited for, whoever takes it away will hear.
  const bool ended = result == 0 && info != nullptr && (options & WNOWAIT) == 0 && info->si_pid > 0 &&
                     (info->si_code == CLD_EXITED || info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED);
  if (ended) devsan::note_end(info->si_pid, devsan::status_of(*info));
  return result;
}
