// SIGKILL at any moment: what a process was told to be recorded is in its file.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstring>
#include <random>
#include <set>
#include <thread>

#include "sample.h"

namespace devsan::trace::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kThreads = 3;

// Says every meeting that add_meeting returned for through the pipe, until it is killed.
[[noreturn]] void record_until_killed(const fs::path& directory, int pipe_end) {
  Recorder recorder;
  if (recorder.open({directory.c_str(), kDefaultFileSize}) != OpenResult::opened) _exit(1);
  const auto work = [&](std::int64_t thread) {
    ThreadRing* const ring = recorder.acquire_ring(static_cast<std::uint32_t>(gettid()), "worker");
    for (std::int64_t i = 0;; ++i) {
      const std::int64_t number = i * kThreads + thread;
      if (ring != nullptr) note_operator(*ring, OperatorId{1}, DeviceSlot{1}, SiteId{1}, static_cast<std::uint32_t>(i));
      if (add_numbered_meeting(recorder, number) == nullptr) pause();
      if (write(pipe_end, &number, sizeof(number)) != sizeof(number)) _exit(2);
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 1; thread < kThreads; ++thread) threads.emplace_back(work, thread);
  work(0);
  _exit(3);
}

// Everything that the child says before it is killed after `delay` from its first word.
std::set<std::int64_t> acknowledged_by_killed_child(const fs::path& directory, std::chrono::microseconds delay) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    record_until_killed(directory, ends[1]);
  }
  REQUIRE(child > 0);
  close(ends[1]);
  std::set<std::int64_t> acknowledged;
  const auto take = [&] {
    std::int64_t number = 0;
    if (read(ends[0], &number, sizeof(number)) != sizeof(number)) return false;
    acknowledged.insert(number);
    return true;
  };
  REQUIRE(take());
  std::thread killer([&] {
    std::this_thread::sleep_for(delay);
    kill(child, SIGKILL);
  });
  while (take()) {
  }
  killer.join();
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  return acknowledged;
}

TEST_CASE("a process killed at any moment leaves all that was acknowledged and the last operators of each thread") {
  std::mt19937 random(99);
  for (int round = 0; round < 25; ++round) {
    const TemporaryDirectory directory;
    const auto acknowledged =
        acknowledged_by_killed_child(directory.path(), std::chrono::microseconds(random() % 20'000));
    const auto files = traces_in(directory.path());
    REQUIRE(files.size() == 1);
    const TraceFile trace = read_trace(files[0]);
    std::set<std::int64_t> found;
    for (const Meeting& meeting : trace.meetings()) {
      found.insert(meeting.fixed.time_ns);
      REQUIRE(trace.string(meeting.fixed.message) == "message " + std::to_string(meeting.fixed.time_ns));
      REQUIRE(meeting.operands.at(0).storage_bytes == static_cast<std::uint64_t>(meeting.fixed.time_ns));
    }
    CHECK(std::includes(found.begin(), found.end(), acknowledged.begin(), acknowledged.end()));
    CHECK(found.size() <= acknowledged.size() + kThreads);
    CHECK(trace.damage().size() <= kThreads);
    for (const Damage& damage : trace.damage())
      CHECK(damage.reason.find("when the process ended") != std::string::npos);
    for (const ThreadTail& thread : trace.threads()) {
      for (std::size_t i = 0; i + 1 < thread.last.size(); ++i) {
        REQUIRE(thread.last[i].step == thread.last[i + 1].step + 1);
      }
    }
    CHECK(trace.header().close_mark == CloseMark::open);
  }
}

TEST_CASE("a process killed while it starts leaves a trace, a file that says it is none, or nothing") {
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    const TemporaryDirectory directory;
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Recorder recorder;
      recorder.open({directory.path().c_str(), kMinFileSize});
      pause();
    }
    REQUIRE(child > 0);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    kill(child, SIGKILL);
    REQUIRE(waitpid(child, nullptr, 0) == child);
    for (const fs::path& file : traces_in(directory.path())) {
      const auto result = TraceFile::open(file);
      if (const Damage* damage = std::get_if<Damage>(&result)) {
        CHECK(damage->reason.find("its process ended before") != std::string::npos);
      } else {
        CHECK(std::get<TraceFile>(result).damage().empty());
      }
    }
  }
}

// With a sanitizer most instructions are the sanitizer's own, and there are too many to stop at each.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
struct Progress {
  std::atomic<int> meetings;
  std::atomic<bool> done;
};

constexpr int kSteppedMeetings = 2;

void record_step_by_step(Recorder& recorder, Progress& progress) {
  for (int i = 1; i <= kSteppedMeetings; ++i) {
    const StringId file = recorder.intern_string("/home/u/train.py");
    const SiteId site = recorder.add_site({{file, StringId::none, i, i, 0, 9}, {file, StringId::none, i, i, 0, 9}});
    OperandRecord operand{};
    operand.device = recorder.intern_device("cuda:0");
    operand.lineage = recorder.add_lineage(
        {LineageId::none, site, recorder.add_operator("aten::add"), operand.device, How::created, 0, {}});
    MeetingPayload fixed{};
    fixed.message = recorder.intern_string("Expected all tensors");
    fixed.site = site;
    fixed.step = static_cast<std::uint32_t>(i);
    Recorder::bump_meeting(recorder.add_meeting(fixed, {&operand, 1}, {}, {}, {}), 0);
    progress.meetings = i;
  }
  progress.done = true;
}

// What a reader would find, had the process been killed at this very instruction.
void check_instant(const fs::path& file, int acknowledged) {
  const TraceFile trace = read_trace(file);
  for (const Damage& damage : trace.damage()) {
    REQUIRE(damage.reason.find("when the process ended") != std::string::npos);
  }
  REQUIRE(trace.damage().size() <= 1);
  REQUIRE(trace.meetings().size() >= static_cast<std::size_t>(acknowledged));
  for (std::size_t i = 0; i < trace.meetings().size(); ++i) {
    const Meeting& meeting = trace.meetings()[i];
    REQUIRE(meeting.fixed.step == i + 1);
    REQUIRE(trace.string(meeting.fixed.message) == "Expected all tensors");
    const auto chain = trace.lineage_chain(meeting.operands.at(0).lineage);
    REQUIRE(chain.size() == 1);
    REQUIRE(trace.operator_name(chain[0].op) == "aten::add");
    REQUIRE(trace.device_name(chain[0].device) == "cuda:0");
    const auto site = trace.site(chain[0].site);
    REQUIRE(site);
    REQUIRE(trace.string(site->user.file) == "/home/u/train.py");
    REQUIRE(site->user.line == static_cast<std::int32_t>(i + 1));
    REQUIRE(site->user.end_column == 9);
  }
}

// The first page of the header and of each section: more than what is recorded step by step.
std::vector<std::byte> changing_bytes(const std::byte* mapped) {
  std::vector<std::byte> bytes(mapped, mapped + sizeof(FileHeader));
  const FileLayout layout = make_layout(kMinFileSize);
  for (const Section& section : layout.sections) {
    bytes.insert(bytes.end(), mapped + section.offset, mapped + section.offset + 4096);
  }
  return bytes;
}

TEST_CASE("at every single instruction of recording the file is one that can be read") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  Progress& progress = *new (memory) Progress{};
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0 || !recorder->reopen_in_child()) _exit(77);
    raise(SIGSTOP);
    record_step_by_step(*recorder, progress);
    pause();
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) {
    WARN("processes cannot be traced here: not tried");
    return;
  }
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL);
  const auto files = traces_in(directory.path());
  REQUIRE(files.size() == 2);
  const fs::path file = files[0] == recorder->path() ? files[1] : files[0];
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  void* const mapped = mmap(nullptr, kMinFileSize, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  REQUIRE(mapped != MAP_FAILED);

  std::vector<std::byte> before;
  int instants = 0;
  while (!progress.done) {
    REQUIRE(ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) == 0);
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSTOPPED(status));
    std::vector<std::byte> now = changing_bytes(static_cast<const std::byte*>(mapped));
    if (now == before) continue;
    check_instant(file, progress.meetings);
    before = std::move(now);
    ++instants;
  }
  kill(child, SIGKILL);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK(instants > 50);
  CHECK(read_trace(file).meetings().size() == kSteppedMeetings);
  munmap(mapped, kMinFileSize);
  munmap(memory, 4096);
}
#endif

}  // namespace
}  // namespace devsan::trace::testing
