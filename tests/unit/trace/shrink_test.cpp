#include "trace/shrink.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "sample.h"

namespace devsan::trace::testing {
namespace {

std::int64_t bytes_on_disk(const std::string& path) {
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  return std::int64_t{status.st_blocks} * 512;
}

// A process that records and ends; returns the path of its trace.
std::string trace_of_a_finished_process(const TemporaryDirectory& directory) {
  const pid_t child = fork();
  if (child == 0) {
    const auto recorder = open_recorder(directory.path());
    record_sample(*recorder);
    recorder->close(CloseMark::exited);
    _exit(0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  const auto traces = traces_in(directory.path());
  REQUIRE(traces.size() == 1);
  return traces.front().string();
}

TEST_CASE("A finished process gives back the space that its trace does not use, and nothing else") {
  const TemporaryDirectory directory;
  const std::string path = trace_of_a_finished_process(directory);
  const auto size = std::filesystem::file_size(path);
  const std::int64_t before = bytes_on_disk(path);
  const std::string whole = describe(read_trace(path));
  const std::uint64_t given_back = give_back_unused(path.c_str());
  if (given_back == 0) {
    WARN("this file system has no holes");
    return;
  }
  CHECK(std::filesystem::file_size(path) == size);
  CHECK(bytes_on_disk(path) < before / 4);
  CHECK(describe(read_trace(path)) == whole);
}

TEST_CASE("A process that runs keeps its space") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  record_sample(*recorder);
  CHECK(give_back_unused(recorder->path()) == 0);
}

TEST_CASE("What is no whole trace is left alone") {
  const TemporaryDirectory directory;
  const std::string path = trace_of_a_finished_process(directory);
  REQUIRE(truncate(path.c_str(), 8192) == 0);
  CHECK(give_back_unused(path.c_str()) == 0);
  CHECK(give_back_unused((directory.path() / "none").c_str()) == 0);
}

}  // namespace
}  // namespace devsan::trace::testing
