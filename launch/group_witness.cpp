#include "launch/group_witness.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace devsan::launch {
namespace {

constexpr int kPatienceMs = 100;

// The command's pipes must not stay open because of the witness.
void close_all_but(int kept) {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) _exit(1);
  const int own = dirfd(directory);
  while (const dirent* entry = readdir(directory)) {
    const int descriptor = atoi(entry->d_name);
    if (entry->d_name[0] != '.' && descriptor != kept && descriptor != own) close(descriptor);
  }
  closedir(directory);
}

[[noreturn]] void bear_witness(int socket, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  close_all_but(socket);
  int signal = 0;
  while (recv(socket, &signal, sizeof signal, 0) == sizeof signal) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    const timespec now{};
    const char seen = sigtimedwait(&one, nullptr, &now) == signal;
    send(socket, &seen, sizeof seen, MSG_NOSIGNAL);
  }
  _exit(0);
}

}  // namespace

GroupWitness::GroupWitness() {
  sigemptyset(&merged_);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) bear_witness(ends[1], parent);
  close(ends[1]);
  socket_ = ends[0];
}

GroupWitness::~GroupWitness() {
  if (socket_ >= 0) close(socket_);
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<bool> GroupWitness::saw(int signal) {
  if (pid_ < 0 || send(socket_, &signal, sizeof signal, MSG_NOSIGNAL) != sizeof signal) return std::nullopt;
  pollfd answer{socket_, POLLIN, 0};
  while (poll(&answer, 1, kPatienceMs) <= 0) {
    kill(pid_, SIGCONT);  // it was stopped with the group, and devsan alone was continued
  }
  char seen = 0;
  if (recv(socket_, &seen, sizeof seen, 0) != sizeof seen) return std::nullopt;
  if (seen == 0 && sigismember(&merged_, signal) == 1) {
    sigdelset(&merged_, signal);
    return true;
  }
  // A second one that came before the witness was asked became one with the first there, but not here.
  sigset_t pending;
  sigpending(&pending);
  const bool second = seen != 0 && sigismember(&pending, signal) == 1;
  second ? sigaddset(&merged_, signal) : sigdelset(&merged_, signal);
  return seen != 0;
}

}  // namespace devsan::launch
