#include "launch/jobs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "launch/messages.h"

namespace devsan::launch {
namespace {

constexpr std::size_t kShownLog = 3000;

// Holds back the signals that end a build, so that it can clean up. One that was ignored (nohup) stays ignored.
class BuildSignals {
 public:
  BuildSignals() {
    sigemptyset(&waited_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
      struct sigaction current {};
      sigaction(signal, nullptr, &current);
      if (current.sa_handler != SIG_IGN) sigaddset(&waited_, signal);
    }
    sigaddset(&waited_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &waited_, &former_mask_);
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &standard, &former_child_action_);
    // What a killed compiler driver had started becomes ours to wait for.
    prctl(PR_GET_CHILD_SUBREAPER, &former_subreaper_);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~BuildSignals() {
    prctl(PR_SET_CHILD_SUBREAPER, former_subreaper_);
    restore();
  }
  BuildSignals(const BuildSignals&) = delete;
  BuildSignals& operator=(const BuildSignals&) = delete;

  void restore() const {
    sigaction(SIGCHLD, &former_child_action_, nullptr);
    sigprocmask(SIG_SETMASK, &former_mask_, nullptr);
  }

  int wait() const {
    int signal = -1;
    while ((signal = sigwaitinfo(&waited_, nullptr)) < 0 && errno == EINTR) {
    }
    return signal;
  }

 private:
  sigset_t waited_{};
  sigset_t former_mask_{};
  struct sigaction former_child_action_ {};
  int former_subreaper_ = 0;
};

[[noreturn]] void execute(const std::vector<std::string>& command, int report) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(report, &error, sizeof error);
  _exit(127);
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;

  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw Failure(std::string("cannot make a pipe: ") + std::strerror(errno));
    read_end = ends[0];
    write_end = ends[1];
  }
  ~Pipe() {
    close_write();
    close(read_end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_write() {
    if (write_end >= 0) close(write_end);
    write_end = -1;
  }

  int read_error() {
    close_write();
    int error = 0;
    return read(read_end, &error, sizeof error) == sizeof error ? error : 0;
  }
};

void redirect(const char* path, int flags, int target) {
  const int opened = open(path, flags | O_CLOEXEC, 0600);
  if (opened < 0) return;
  if (opened == target) {
    fcntl(opened, F_SETFD, 0);
  } else {
    dup2(opened, target);
  }
}

struct Running {
  const Job* job;
  std::unique_ptr<Pipe> report;
};

class JobRunner {
 public:
  ~JobRunner() { kill_all(); }

  void start(const Job& job, const BuildSignals& signals) {
    auto report = std::make_unique<Pipe>();
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) throw Failure(std::string("cannot start a process: ") + std::strerror(errno));
    if (pid == 0) {
      setpgid(0, 0);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      signals.restore();
      redirect("/dev/null", O_RDONLY, STDIN_FILENO);
      redirect(job.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
      dup2(STDOUT_FILENO, STDERR_FILENO);
      if (!job.temporary.empty()) setenv("TMPDIR", job.temporary.c_str(), 1);
      execute(job.command, report->write_end);
    }
    setpgid(pid, pid);
    report->close_write();
    running_.emplace(pid, Running{&job, std::move(report)});
  }

  // Reaps what has ended; true when something had.
  bool reap(std::vector<JobFailure>& failures, std::size_t& succeeded) {
    bool any = false;
    int status = 0;
    for (auto entry = running_.begin(); entry != running_.end();) {
      if (waitpid(entry->first, &status, WNOHANG) != entry->first) {
        ++entry;
        continue;
      }
      any = true;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        ++succeeded;
      } else {
        kill(-entry->first, SIGKILL);
        reap_group(entry->first);
        failures.push_back(describe(entry->second, status));
      }
      entry = running_.erase(entry);
    }
    return any;
  }

  std::size_t count() const { return running_.size(); }

  void kill_all() {
    for (const auto& entry : running_) kill(-entry.first, SIGKILL);
    for (const auto& entry : running_) reap_group(entry.first);
    running_.clear();
  }

 private:
  // Waits until the last process of the group is gone, and with it whoever could still write.
  static void reap_group(pid_t group) {
    while (waitpid(-group, nullptr, 0) > 0 || errno == EINTR) {
    }
  }

  static JobFailure describe(const Running& ended, int status) {
    JobFailure failure;
    failure.what = ended.job->what;
    failure.wait_status = status;
    failure.start_error = ended.report->read_error();
    std::ifstream file(ended.job->log, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    failure.log = text.str().substr(0, kShownLog);
    return failure;
  }

  std::map<pid_t, Running> running_;
};

}  // namespace

std::vector<JobFailure> run_jobs(const std::vector<Job>& jobs, std::size_t parallel,
                                 const std::function<void(std::size_t done)>& finished) {
  const BuildSignals signals;
  JobRunner runner;
  std::vector<JobFailure> failures;
  std::size_t next = 0;
  std::size_t succeeded = 0;
  while (failures.empty() && succeeded < jobs.size()) {
    while (next < jobs.size() && runner.count() < std::max<std::size_t>(parallel, 1)) {
      runner.start(jobs[next++], signals);
    }
    const int signal = signals.wait();
    if (signal != SIGCHLD) {
      runner.kill_all();
      throw Interrupted(signal);
    }
    if (runner.reap(failures, succeeded) && failures.empty()) finished(succeeded);
  }
  runner.kill_all();
  return failures;
}

Captured capture(const std::vector<std::string>& command) {
  Pipe report;
  Pipe output;
  Pipe errors;
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  struct sigaction former {};
  sigaction(SIGCHLD, &standard, &former);
  const pid_t pid = fork();
  if (pid < 0) throw Failure(std::string("cannot start a process: ") + std::strerror(errno));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigaction(SIGCHLD, &former, nullptr);
    redirect("/dev/null", O_RDONLY, STDIN_FILENO);
    dup2(output.write_end, STDOUT_FILENO);
    dup2(errors.write_end, STDERR_FILENO);
    execute(command, report.write_end);
  }
  output.close_write();
  errors.close_write();
  Captured captured;
  std::array<pollfd, 2> polled = {pollfd{output.read_end, POLLIN, 0}, pollfd{errors.read_end, POLLIN, 0}};
  std::array<std::string*, 2> texts = {&captured.output, &captured.errors};
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) break;
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t bytes = read(polled[i].fd, buffer, sizeof buffer);
      if (bytes > 0) texts[i]->append(buffer, static_cast<std::size_t>(bytes));
      if (bytes == 0) polled[i].fd = -1;
    }
  }
  while (waitpid(pid, &captured.wait_status, 0) < 0 && errno == EINTR) {
  }
  captured.start_error = report.read_error();
  sigaction(SIGCHLD, &former, nullptr);
  return captured;
}

}  // namespace devsan::launch
