// Children of a recording process, however they are made.
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <thread>

#include "sample.h"
#include "trace/fork_page.h"

namespace devsan::trace::testing {
namespace {

namespace fs = std::filesystem;

// Runs `body` in a child made by `make_child` and gives its exit status; the child runs nothing else.
template <class MakeChild, class Body>
int in_child(MakeChild&& make_child, Body&& body) {
  const pid_t child = make_child();
  if (child == 0) _exit(body());
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

pid_t raw_fork() {
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

fs::path file_of_child(const fs::path& directory, const Recorder& parent) {
  for (const fs::path& file : traces_in(directory)) {
    if (file != parent.path()) return file;
  }
  FAIL("the child has no file");
  return {};
}

TEST_CASE("a forked child is inactive at once and then writes only a file of its own") {
  const bool raw = GENERATE(false, true);
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  record_sample(*recorder);
  const std::vector<std::byte> before = bytes_of(recorder->path());
  const std::uint64_t parents_epoch = recorder->epoch_page()->epoch.load();
  const int status = in_child([&] { return raw ? raw_fork() : fork(); },
                              [&] {
                                if (recorder->active() || add_numbered_meeting(*recorder, 1) != nullptr) return 1;
                                recorder->set_step(99);
                                if (!recorder->reopen_in_child() || !recorder->active()) return 2;
                                if (recorder->epoch_page()->epoch.load() == parents_epoch) return 3;
                                if (recorder->string(recorder->intern_string("scale")) != "scale") return 4;
                                if (recorder->lineage(LineageId{3}).parent != LineageId{2}) return 5;
                                const LineageId known = recorder->add_lineage(recorder->lineage(LineageId{2}));
                                if (known != LineageId{2}) return 6;
                                record_sample(*recorder);
                                recorder->close(CloseMark::exited);
                                return 0;
                              });
  CHECK(status == 0);
  CHECK(recorder->active());
  CHECK(bytes_of(recorder->path()) == before);

  const TraceFile parents = read_trace(*recorder);
  const TraceFile childs = read_trace(file_of_child(directory.path(), *recorder));
  CHECK(childs.damage().empty());
  CHECK(childs.header().parent_pid == parents.header().pid);
  CHECK(childs.header().close_mark == CloseMark::exited);
  CHECK(childs.meetings().size() == 2);
  CHECK(childs.threads().size() == 1);
  CHECK(childs.header().lineage_used == parents.header().lineage_used);
  CHECK(childs.header().sites_used == parents.header().sites_used);
  CHECK(childs.header().strings_used == parents.header().strings_used);
  CHECK(childs.lineage_chain(childs.meetings()[0].operands[1].lineage).size() == 3);
}

TEST_CASE("pointers that a child kept from its parent reach neither the parent's file nor its own") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  MeetingPayload* const meeting = add_numbered_meeting(*recorder, 1);
  ThreadRing* const ring = recorder->acquire_ring(1, "main");
  const int status = in_child(fork, [&] {
    if (!recorder->reopen_in_child()) return 1;
    add_numbered_meeting(*recorder, 2);
    Recorder::bump_meeting(meeting, 7);
    note_operator(*ring, OperatorId{1}, DeviceSlot{1}, SiteId{1}, 7);
    return 0;
  });
  CHECK(status == 0);
  CHECK(read_trace(*recorder).meetings()[0].fixed.repeats == 0);
  CHECK(read_trace(*recorder).threads()[0].operators == 0);
  const TraceFile childs = read_trace(file_of_child(directory.path(), *recorder));
  CHECK(childs.damage().empty());
  REQUIRE(childs.meetings().size() == 1);
  CHECK(childs.meetings()[0].fixed.repeats == 0);
  CHECK(childs.threads().empty());
}

TEST_CASE("a child of a child has a file of its own, too, with an epoch of its own") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  const StringId word = recorder->intern_string("of the first");
  const int status = in_child(fork, [&] {
    if (!recorder->reopen_in_child()) return 1;
    const std::uint64_t epoch = recorder->epoch_page()->epoch.load();
    const StringId second = recorder->intern_string("of the second");
    return in_child(fork, [&] {
      if (recorder->active() || !recorder->reopen_in_child()) return 2;
      if (recorder->epoch_page()->epoch.load() == epoch) return 3;
      if (recorder->string(word) != "of the first" || recorder->string(second) != "of the second") return 4;
      return add_numbered_meeting(*recorder, 3) != nullptr ? 0 : 5;
    });
  });
  CHECK(status == 0);
  CHECK(traces_in(directory.path()).size() == 3);
}

TEST_CASE("of the threads of a child exactly one makes the file and all can record") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  const int status = in_child(fork, [&] {
    std::atomic<int> recorded{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        if (recorder->reopen_in_child() && add_numbered_meeting(*recorder, i) != nullptr) ++recorded;
      });
    }
    for (std::thread& thread : threads) thread.join();
    return recorded == 8 ? 0 : 1;
  });
  CHECK(status == 0);
  REQUIRE(traces_in(directory.path()).size() == 2);
  CHECK(read_trace(file_of_child(directory.path(), *recorder)).meetings().size() == 8);
}

// ThreadSanitizer takes the threads of the parent for threads of the child, which share the file but no code.
#ifndef __SANITIZE_THREAD__
TEST_CASE("a child made while its parent's threads record finds every entry that it knows the id of") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path(), kDefaultFileSize);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    for (std::uint32_t i = 1; !stop; ++i) {
      const StringId text = recorder->intern_string("busy " + std::to_string(i % 20000));
      const Position here{text, text, 1, 1, 0, 0};
      recorder->add_lineage(
          {LineageId::none, recorder->add_site({here, here}), OperatorId{1}, DeviceSlot{1}, How::created, 0, {}});
    }
  });
  int failures = 0;
  for (int round = 0; round < 20; ++round) {
    const std::string text = "mine " + std::to_string(round);
    const StringId known = recorder->intern_string(text);
    failures += in_child(raw_fork, [&] {
      if (!recorder->reopen_in_child()) return 1;
      if (recorder->string(known) != text || recorder->intern_string(text) != known) return 1;
      return recorder->string(recorder->intern_string("new in the child")) == "new in the child" ? 0 : 1;
    });
  }
  stop = true;
  busy.join();
  CHECK(failures == 0);
  for (const fs::path& file : traces_in(directory.path())) CHECK(read_trace(file).damage().empty());
}
#endif

TEST_CASE("a vforked child that says it will exec leaves its parent's file alone") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  add_numbered_meeting(*recorder, 1);
  const std::vector<std::byte> before = bytes_of(recorder->path());
  const std::string recorder_path = recorder->path();
  Recorder* const shared = recorder.get();
  const pid_t child = vfork();
  if (child == 0) {
    shared->close(CloseMark::executed);
    shared->add_notice("from a vforked child");
    execl("/bin/true", "true", nullptr);
    _exit(127);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(bytes_of(recorder_path) == before);
  CHECK(recorder->active());
  CHECK(traces_in(directory.path()).size() == 1);
}

TEST_CASE("a child whose directory is gone gives up, once and for all, and its children with it") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path() / "out");
  fs::remove_all(directory.path() / "out");
  const int status = in_child(fork, [&] {
    if (recorder->reopen_in_child() || !recorder->gave_up()) return 1;
    if (recorder->last_errno() != ENOENT) return 2;
    fs::create_directory(directory.path() / "out");
    if (recorder->reopen_in_child() || add_numbered_meeting(*recorder, 1) != nullptr) return 3;
    return in_child(fork, [&] { return recorder->reopen_in_child() ? 4 : 0; });
  });
  CHECK(status == 0);
  CHECK(recorder->active());
  CHECK(add_numbered_meeting(*recorder, 1) != nullptr);
}

TEST_CASE("where the kernel cannot wipe a page, the C library does at fork") {
  const ForkPageResult made = make_fork_page(WipedBy::libc);
  REQUIRE(made.page != nullptr);
  CHECK(made.wiped_by == WipedBy::libc);
  made.page->epoch.epoch = 7;
  made.page->reopening = ReopenState::working;
  const int status = in_child(
      fork, [&] { return made.page->epoch.epoch == 0 && made.page->reopening == ReopenState::untouched ? 0 : 1; });
  CHECK(status == 0);
  CHECK(made.page->epoch.epoch == 7);
}

}  // namespace
}  // namespace devsan::trace::testing
