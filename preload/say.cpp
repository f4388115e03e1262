#include "preload/say.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <initializer_list>

namespace devsan {
namespace {

constexpr int kPatienceMilliseconds = 200;  // a reader that is gone for good must not hold up the program

struct stat g_stderr_at_start;
std::atomic<bool> g_may_say{false};
std::atomic<bool> g_quiet{false};

// Writing can send SIGPIPE, SIGXFSZ and SIGTTOU to the program, which it would not have got without us.
class SignalsHeldBack {
 public:
  SignalsHeldBack() noexcept {
    sigemptyset(&held_);
    for (const int number : {SIGPIPE, SIGXFSZ, SIGTTOU}) sigaddset(&held_, number);
    sigpending(&pending_before_);
    pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }

  // Takes back what our own write has made pending.
  ~SignalsHeldBack() {
    sigset_t pending;
    sigpending(&pending);
    for (const int number : {SIGPIPE, SIGXFSZ, SIGTTOU}) {
      if (sigismember(&pending, number) != 1 || sigismember(&pending_before_, number) == 1) continue;
      sigset_t one;
      sigemptyset(&one);
      sigaddset(&one, number);
      const timespec at_once{};
      while (sigtimedwait(&one, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

 private:
  sigset_t held_;
  sigset_t before_;
  sigset_t pending_before_;
};

bool is_stderr_of_start() noexcept {
  struct stat now;
  return g_may_say.load(std::memory_order_relaxed) && fstat(STDERR_FILENO, &now) == 0 &&
         now.st_dev == g_stderr_at_start.st_dev && now.st_ino == g_stderr_at_start.st_ino &&
         now.st_rdev == g_stderr_at_start.st_rdev;
}

}  // namespace

void remember_stderr() noexcept {
  g_may_say.store(fstat(STDERR_FILENO, &g_stderr_at_start) == 0, std::memory_order_relaxed);
}

void set_quiet(bool quiet) noexcept {
  g_quiet.store(quiet, std::memory_order_relaxed);
}

void say(const char* text) noexcept {
  const int saved_errno = errno;
  if (!g_quiet.load(std::memory_order_relaxed) && is_stderr_of_start()) {
    char prefix[] = "devsan: ";
    char line_feed[] = "\n";
    std::size_t length = std::strlen(text);
    while (length > 0 && text[length - 1] == '\n') --length;
    const iovec parts[] = {{prefix, sizeof prefix - 1}, {const_cast<char*>(text), length}, {line_feed, 1}};
    const SignalsHeldBack held;
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    if (poll(&ready, 1, kPatienceMilliseconds) == 1 && (ready.revents & POLLOUT) != 0) {
      // Lost where the reader is gone: there is nobody to tell.
      [[maybe_unused]] const ssize_t written = writev(STDERR_FILENO, parts, 3);
    }
  }
  errno = saved_errno;
}

}  // namespace devsan
