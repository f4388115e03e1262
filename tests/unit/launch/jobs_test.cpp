#include "launch/jobs.h"

#include <signal.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <fstream>

#include "temporary_directory.h"

using namespace devsan::launch;
namespace fs = std::filesystem;

namespace {

Job shell(const TemporaryDirectory& directory, const std::string& name, const std::string& script) {
  return {name, {"/bin/sh", "-c", script}, directory.path() / (name + ".log"), {}};
}

}  // namespace

TEST_CASE("every job runs, and each end is told") {
  const TemporaryDirectory directory;
  std::vector<Job> jobs;
  for (const char* name : {"a", "b", "c"}) {
    jobs.push_back(shell(directory, name, "touch " + (directory.path() / name).string()));
  }
  std::size_t last = 0;
  CHECK(run_jobs(jobs, 2, [&](std::size_t done) { last = done; }).empty());
  CHECK(last == 3);
  for (const char* name : {"a", "b", "c"}) CHECK(fs::exists(directory.path() / name));
}

TEST_CASE("a failing job ends the others, and its words are kept") {
  const TemporaryDirectory directory;
  const std::string mark = (directory.path() / "mark").string();
  const std::vector<Job> jobs = {
      shell(directory, "bad", "echo out; echo err >&2; exit 3"),
      shell(directory, "later", "touch " + mark),
  };
  const std::vector<JobFailure> failures = run_jobs(jobs, 1, [](std::size_t) { FAIL("nothing has succeeded"); });
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].what == "bad");
  CHECK(WEXITSTATUS(failures[0].wait_status) == 3);
  CHECK(failures[0].log == "out\nerr\n");
  CHECK_FALSE(fs::exists(mark));
}

TEST_CASE("a program that is not there is told by its errno") {
  const TemporaryDirectory directory;
  const Job missing{"missing", {"/nonexistent/compiler"}, directory.path() / "log", {}};
  const std::vector<JobFailure> failures = run_jobs({missing}, 1, [](std::size_t) {});
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].start_error == ENOENT);
}

TEST_CASE("a signal ends the jobs and their children") {
  const TemporaryDirectory directory;
  const fs::path fifo = directory.path() / "children";
  const std::string script = "sleep 1000 & echo $! > " + fifo.string() + "; kill -TERM $PPID; wait";
  CHECK_THROWS_AS(run_jobs({shell(directory, "long", script)}, 1, [](std::size_t) {}), Interrupted);
  pid_t child = 0;
  std::ifstream(fifo) >> child;
  REQUIRE(child > 0);
  errno = 0;
  CHECK(kill(child, 0) == -1);
  CHECK(errno == ESRCH);
}

TEST_CASE("output and errors of a program are captured apart") {
  const Captured captured = capture({"/bin/sh", "-c", "cat; echo out; echo err >&2; exit 4"});
  CHECK(captured.output == "out\n");
  CHECK(captured.errors == "err\n");
  CHECK(WEXITSTATUS(captured.wait_status) == 4);
  CHECK(captured.start_error == 0);
  CHECK(capture({"/nonexistent"}).start_error == ENOENT);
}
