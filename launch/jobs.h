// Programs that devsan itself runs: the target Python, the compiler.
#pragma once

#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace devsan::launch {

struct Job {
  std::string what;  // for messages: "ops3.cpp"
  std::vector<std::string> command;
  std::filesystem::path log;        // its stdout and stderr
  std::filesystem::path temporary;  // its TMPDIR; empty leaves the variable alone
};

struct JobFailure {
  std::string what;
  int wait_status = 0;
  int start_error = 0;  // errno when the program could not be started
  std::string log;      // the last of what it wrote
};

// SIGINT, SIGTERM or SIGHUP came while jobs ran; they are dead by the time this is thrown.
struct Interrupted : std::runtime_error {
  explicit Interrupted(int by) : std::runtime_error("interrupted"), signal(by) {}
  int signal;
};

// Runs the jobs, at most `parallel` at once, each in a process group of its own and with nothing on its stdin. Stops at
// the first failure. `finished` is called after each job that succeeded.
std::vector<JobFailure> run_jobs(const std::vector<Job>& jobs, std::size_t parallel,
                                 const std::function<void(std::size_t done)>& finished);

// What one program writes to stdout, and its stderr, and how it ended.
struct Captured {
  int wait_status = 0;
  int start_error = 0;
  std::string output;
  std::string errors;
};
Captured capture(const std::vector<std::string>& command);

}  // namespace devsan::launch
