// A disk without room: told of when the file is made, never by a signal later.
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sched.h>

#include <catch2/catch.hpp>
#include <cerrno>

#include "sample.h"

namespace devsan::trace::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kNotPermitted = 77;

// In a process of its own: what is tried here changes limits and mounts.
template <class Body>
int exit_status_of(Body&& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  INFO("wait status " << status);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST_CASE("past the limit on file sizes there is no file, no signal, and the reason is kept") {
  const TemporaryDirectory directory;
  const int status = exit_status_of([&] {
    const rlimit limit{1 << 20, 1 << 20};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return kNotPermitted;
    Recorder recorder;
    if (recorder.open({directory.path().c_str(), kMinFileSize}) != OpenResult::no_space) return 1;
    return recorder.last_errno() == EFBIG && recorder.gave_up() && !recorder.active() ? 0 : 2;
  });
  CHECK(status == 0);
  CHECK(traces_in(directory.path()).empty());
}

TEST_CASE("a child that finds no room gives up and leaves its parent's file as it is") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  const int status = exit_status_of([&] {
    const rlimit limit{1 << 20, 1 << 20};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return kNotPermitted;
    return !recorder->reopen_in_child() && recorder->gave_up() ? 0 : 1;
  });
  CHECK(status == 0);
  CHECK(traces_in(directory.path()).size() == 1);
  CHECK(add_numbered_meeting(*recorder, 1) != nullptr);
}

bool mount_small_disk(const fs::path& where) {
  // Private to this process, so that nothing is left mounted whatever happens to it.
  if (unshare(CLONE_NEWNS) != 0) return false;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return mount("devsan", where.c_str(), "tmpfs", 0, "size=3m") == 0;
}

TEST_CASE("on a disk that is full there is no file, and one that fills up later does no harm") {
  const TemporaryDirectory directory;
  const int status = exit_status_of([&] {
    if (!mount_small_disk(directory.path())) return kNotPermitted;
    Recorder first;
    if (first.open({directory.path().c_str(), kMinFileSize}) != OpenResult::opened) return 1;
    Recorder second;
    if (second.open({directory.path().c_str(), kMinFileSize}) != OpenResult::no_space) return 2;
    if (second.last_errno() != ENOSPC || traces_in(directory.path()).size() != 1) return 3;
    write_bytes(directory.path() / "filler", std::vector<std::byte>(4 << 20, std::byte{1}));
    while (add_numbered_meeting(first, 1) != nullptr) {
    }
    return read_trace(first).damage().empty() ? 0 : 4;
  });
  if (status == kNotPermitted) {
    WARN("no file system can be mounted here: a full disk was not tried");
  } else {
    CHECK(status == 0);
  }
}

}  // namespace
}  // namespace devsan::trace::testing
