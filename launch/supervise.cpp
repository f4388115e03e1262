#include "launch/supervise.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "launch/group_witness.h"
#include "launch/messages.h"

namespace devsan::launch {
namespace {

// Blocks everything that can be forwarded, and puts the former state back. Dispositions stay as they are: a blocked
// signal is kept even where it is ignored. Only SIGCHLD must not be ignored, or there would be no child to wait for.
class HeldSignals {
 public:
  HeldSignals() {
    sigfillset(&held_);
    // Faults of devsan's own, and what asks it to dump core, keep their meaning.
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&held_, fault);
    sigprocmask(SIG_BLOCK, &held_, &former_mask_);
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &standard, &former_child_action_);
  }
  ~HeldSignals() {
    // What is still pending was meant for a command that has ended.
    const timespec now{};
    while (sigtimedwait(&held_, nullptr, &now) > 0) {
    }
    restore();
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  void restore() const {
    sigaction(SIGCHLD, &former_child_action_, nullptr);
    sigprocmask(SIG_SETMASK, &former_mask_, nullptr);
  }

  int wait(siginfo_t* info) const {
    int signal = -1;
    while ((signal = sigwaitinfo(&held_, info)) < 0 && errno == EINTR) {
    }
    return signal;
  }

 private:
  sigset_t held_{};
  sigset_t former_mask_{};
  struct sigaction former_child_action_ {};
};

[[noreturn]] void become(const std::vector<std::string>& command, Environment& environment, const HeldSignals& signals,
                         pid_t parent, int report) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(128 + SIGKILL);  // the parent died before the line above
  signals.restore();
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> variables = environment.for_exec();
  execvpe(arguments[0], arguments.data(), variables.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(report, &error, sizeof error);
  _exit(127);
}

// Stops this process as its child was stopped, so that the shell sees the job stop in the same way.
void stop_like_child(int signal) {
  if (signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU) signal = SIGSTOP;
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  struct sigaction former {};
  sigset_t one;
  sigset_t mask;
  sigemptyset(&one);
  sigaddset(&one, signal);
  sigaction(signal, &standard, &former);
  raise(signal);
  sigprocmask(SIG_UNBLOCK, &one, &mask);  // stops here
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  sigaction(signal, &former, nullptr);
}

// The terminal sends these to the whole foreground group, so the child has got them too. For when there is no witness.
bool came_from_terminal(int signal, const siginfo_t& info) {
  if (info.si_code != SI_KERNEL) return false;
  switch (signal) {
    case SIGINT:
    case SIGQUIT:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGWINCH:
    case SIGHUP:
    case SIGCONT:
      return true;
    default:
      return false;
  }
}

// Whether the child has got the signal that this process got, without being passed it.
bool child_has(int signal, const siginfo_t& info, pid_t child, GroupWitness& witness) {
  const std::optional<bool> seen = witness.saw(signal);
  return seen.value_or(came_from_terminal(signal, info)) && getpgid(child) == getpgrp();
}

void forward(int signal, const siginfo_t& info, pid_t child, GroupWitness& witness) {
  if (child_has(signal, info, child, witness)) return;
  if (signal == SIGPIPE && info.si_pid == getpid()) return;  // devsan's own write, to a pipe that nobody reads
  if (info.si_code == SI_QUEUE) {
    sigqueue(child, signal, info.si_value);
  } else {
    kill(child, signal);
  }
}

// The child's end, once it has come; follows it into a stop before.
std::optional<int> collect(pid_t child) {
  int status = 0;
  pid_t changed = 0;
  while ((changed = waitpid(child, &status, WNOHANG | WUNTRACED | WCONTINUED)) != 0) {
    if (changed < 0) {
      if (errno == EINTR) continue;
      throw Failure(std::string("cannot wait for the command: ") + std::strerror(errno));
    }
    if (WIFEXITED(status) || WIFSIGNALED(status)) return status;
    if (WIFSTOPPED(status)) stop_like_child(WSTOPSIG(status));
  }
  return std::nullopt;
}

int wait_for_end(pid_t child, const HeldSignals& signals, GroupWitness& witness) {
  while (true) {
    siginfo_t info{};
    const int signal = signals.wait(&info);
    if (signal != SIGCHLD) {
      forward(signal, info, child, witness);
    } else if (const std::optional<int> status = collect(child)) {
      return *status;
    }
  }
}

}  // namespace

Ending supervise(const std::vector<std::string>& command, Environment& environment) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) throw Failure(std::string("cannot create a pipe: ") + std::strerror(errno));
  const HeldSignals signals;
  GroupWitness witness;  // older than the command, younger than devsan
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw Failure(std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) become(command, environment, signals, parent, report[1]);
  close(report[1]);
  Ending ending;
  ending.pid = child;
  ending.wait_status = wait_for_end(child, signals, witness);
  if (read(report[0], &ending.start_error, sizeof ending.start_error) <= 0) ending.start_error = 0;
  close(report[0]);
  return ending;
}

int exit_status(const Ending& ending) {
  if (ending.start_error != 0) return ending.start_error == ENOENT || ending.start_error == ENOTDIR ? 127 : 126;
  return WIFSIGNALED(ending.wait_status) ? 128 + WTERMSIG(ending.wait_status) : WEXITSTATUS(ending.wait_status);
}

}  // namespace devsan::launch
