// While system calls are made on behalf of devsan, the thread's signals wait, it cannot be cancelled, and errno is put
// back: the program must not notice that its thread did something in between.
#pragma once

#include <pthread.h>

#include <cerrno>
#include <csignal>

namespace devsan::trace {

class KeepErrno {
 public:
  KeepErrno() noexcept : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int saved_;
};

class QuietSection {
 public:
  QuietSection() noexcept {
    sigset_t blocked;
    sigfillset(&blocked);
    // Signals of the thread's own faults: a blocked one would kill the process past its handler.
    for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}) sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, &signals_);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
  }
  ~QuietSection() {
    pthread_setcancelstate(cancel_state_, nullptr);
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
  }
  QuietSection(const QuietSection&) = delete;
  QuietSection& operator=(const QuietSection&) = delete;

 private:
  KeepErrno errno_;
  sigset_t signals_;
  int cancel_state_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace devsan::trace
