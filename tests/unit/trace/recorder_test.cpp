#include "trace/recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <thread>

#include "sample.h"
#include "trace/crc32c.h"

namespace devsan::trace::testing {
namespace {

namespace fs = std::filesystem;

std::string pid_text() {
  return std::to_string(getpid());
}

class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~EnvironmentVariable() { unsetenv(name_); }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const char* name_;
};

TEST_CASE("a recorder that was never opened takes nothing and gives nothing") {
  Recorder recorder;
  CHECK_FALSE(recorder.active());
  CHECK(recorder.intern_string("text") == StringId::none);
  CHECK(recorder.add_operator("aten::add") == OperatorId::none);
  CHECK(
      recorder.add_lineage({LineageId::none, SiteId::none, OperatorId::none, DeviceSlot::none, How::created, 0, {}}) ==
      LineageId::none);
  CHECK(recorder.acquire_ring(1, "thread") == nullptr);
  CHECK(recorder.add_meeting({}, {}, {}, {}, {}) == nullptr);
  CHECK(recorder.string(StringId{4}).empty());
  CHECK_FALSE(recorder.reopen_in_child());
  recorder.set_step(3);
  CHECK(recorder.step() == 0);
  recorder.close(CloseMark::exited);
  CHECK(std::string(recorder.path()).empty());
}

TEST_CASE("everything that is recorded is read back") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  record_sample(*recorder);
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  REQUIRE(trace.meetings().size() == 2);

  const Meeting& meeting = trace.meetings()[0];
  CHECK(trace.operator_name(meeting.fixed.op) == "aten::mul_.Tensor");
  CHECK(trace.string(meeting.fixed.message) == "Expected all tensors to be on the same device");
  CHECK(meeting.fixed.repeats == 2);
  CHECK(meeting.fixed.last_step == 19);
  CHECK(meeting.fixed.step == 17);
  CHECK(meeting.fixed.flags == (kRaised | kHandled));
  REQUIRE(meeting.operands.size() == 2);
  CHECK(trace.string(meeting.operands[0].name) == "self.bias");
  CHECK(trace.device_name(meeting.operands[0].device) == "cpu");
  CHECK(trace.device_name(meeting.operands[1].device) == "cuda:0");
  CHECK(meeting.operands[1].sizes[1] == 1024);
  REQUIRE(meeting.frames.size() == 2);
  CHECK(trace.string(meeting.frames[1].position.file) == "/home/u/train.py");
  CHECK(trace.source_line(meeting.frames[1].position.file, 42) == "    x.mul_(self.sc\u00e4le)");
  CHECK(meeting.forward_frames.size() == 1);
  REQUIRE(meeting.evidence.size() == 2);
  CHECK(meeting.evidence[0].kind == EvidenceKind::host_access);
  CHECK(meeting.evidence[0].operand == 1);
  CHECK(meeting.evidence[0].at.line == 42);
  CHECK(trace.string(meeting.evidence[0].text) == "read 16 of 4096");
  CHECK(meeting.evidence[1].operand == kWholeFinding);
  CHECK(trace.meetings()[1].evidence.empty());

  const auto chain = trace.lineage_chain(meeting.operands[1].lineage);
  REQUIRE(chain.size() == 3);
  CHECK(chain[0].how == How::derived);
  CHECK(chain[1].how == How::moved);
  CHECK(chain[2].how == How::created);
  CHECK(trace.string(trace.site(chain[2].site)->user.function) == "Net.forward");

  REQUIRE(trace.meetings()[1].native_frames.size() == 2);
  CHECK(trace.string(trace.meetings()[1].native_frames[0].symbol) == "forward()");
  REQUIRE(trace.threads().size() == 1);
  CHECK(trace.threads()[0].name == "MainThread");
  CHECK(trace.threads()[0].operators == kRingEntries + 8);
  REQUIRE(trace.threads()[0].last.size() == kRingEntries - 1);
  CHECK(trace.threads()[0].last[0].step == (kRingEntries + 7) / 100);
  CHECK(trace.run_info()[0] == std::pair<std::string, std::string>("torch", "2.13.0"));
  CHECK(trace.notices()[0].text == "7 operators are not seen");
  CHECK(trace.header().step == 17);
  CHECK(trace.header().optimizer_steps == 1);
  CHECK(trace.header().pid == static_cast<std::uint32_t>(getpid()));
  CHECK(trace.header().start_ticks > 0);
  CHECK(trace.header().close_mark == CloseMark::open);
}

TEST_CASE("a rank that is learned later counts where the environment gave none, and a smaller group tells none") {
  const TemporaryDirectory directory;
  const auto learns = open_recorder(directory.path());
  CHECK_FALSE(read_trace(*learns).rank());
  learns->add_rank(-1, 4);
  CHECK_FALSE(read_trace(*learns).rank());
  learns->add_rank(3, 4);
  learns->add_rank(0, 2);
  CHECK(read_trace(*learns).rank() == 3);
  CHECK(fs::path(learns->path()).filename() == "rank-." + pid_text() + ".devsan");

  const EnvironmentVariable given("RANK", "7");
  const auto knows = open_recorder(directory.path());
  knows->add_rank(3, 4);
  CHECK(read_trace(*knows).rank() == 7);
}

TEST_CASE("a trace says which run it is of, and when its process ended") {
  const TemporaryDirectory directory;
  Recorder recorder;
  RunIdentity run{{}, 17};
  std::string_view("run-1").copy(run.name.data(), run.name.size());
  REQUIRE(recorder.open({directory.path().c_str(), kMinFileSize, run}) == OpenResult::opened);
  const auto header = read_header(recorder.path());
  REQUIRE(header);
  CHECK(run_of(*header) == "run-1");
  CHECK(header->rendezvous == 17);
  CHECK(header->end_time_ns == 0);
  recorder.close(CloseMark::exited);
  CHECK(read_trace(recorder).run() == "run-1");
  CHECK(read_trace(recorder).header().end_time_ns >= header->start_time_ns);
}

TEST_CASE("what is recorded can be read back in the process") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  record_sample(*recorder);
  CHECK(recorder->string(recorder->intern_string("MainThread")) == "MainThread");
  CHECK(recorder->string(recorder->operator_name(recorder->add_operator("aten::to.device"))) == "aten::to.device");
  CHECK(recorder->string(recorder->device_name(recorder->intern_device("cuda:0"))) == "cuda:0");
  CHECK(recorder->site(SiteId{1}).user.line == 42);
  CHECK(recorder->lineage(LineageId{3}).parent == LineageId{2});
  CHECK(recorder->step() == 17);
  for (const std::uint32_t none : {0u, 1u << 30, ~0u}) {
    CHECK(recorder->string(StringId{none}).empty());
    CHECK(recorder->site(SiteId{none}).user.line == 0);
    CHECK(recorder->lineage(LineageId{none}).how == How{});
  }
}

TEST_CASE("equal entries get one id") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  CHECK(recorder->intern_string("a") == recorder->intern_string("a"));
  CHECK(recorder->intern_string("a") != recorder->intern_string("b"));
  CHECK(recorder->intern_string("") == StringId::none);
  CHECK(recorder->add_operator("aten::add") == recorder->add_operator("aten::add"));
  const Position here{recorder->intern_string("a.py"), StringId::none, 1, 1, 0, 1};
  CHECK(recorder->add_site({here, here}) == recorder->add_site({here, here}));
  CHECK(recorder->add_site({here, {}}) == recorder->add_site({here, here}));
  CHECK(recorder->add_site({}) == SiteId::none);
  LineageNode node{LineageId::none, SiteId{1}, OperatorId{1}, DeviceSlot{1}, How::created, 0, 0};
  const LineageId first = recorder->add_lineage(node);
  CHECK(recorder->add_lineage(node) == first);
  node.how = How{};
  CHECK(recorder->add_lineage(node) == LineageId::none);
  CHECK(recorder->intern_device("cpu") == recorder->intern_device("cpu"));
  CHECK(read_trace(*recorder).header().lineage_used == 2);
}

TEST_CASE("the calls that led to a step are read back, the innermost first") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  LineageId call = LineageId::none;
  for (std::uint32_t site = 12; site > 0; --site) {
    call = recorder->add_lineage({call, SiteId{site}, OperatorId::none, DeviceSlot::none, How::called, 0, 0});
  }
  LineageNode step{LineageId::none, SiteId{20}, OperatorId{1}, DeviceSlot{1}, How::created, 0, 0};
  step.calls = static_cast<std::uint32_t>(call) & 0xFFFFFF;
  const LineageId created = recorder->add_lineage(step);
  step.calls = 0;
  CHECK(recorder->add_lineage(step) != created);

  const TraceFile trace = read_trace(*recorder);
  const auto chain = trace.lineage_chain(created);
  REQUIRE(chain.size() == 1);
  const std::vector<SiteId> sites = trace.calls_of(chain[0]);
  REQUIRE(sites.size() == kMaxCalls);
  CHECK(sites.front() == SiteId{1});
  CHECK(sites.back() == SiteId{kMaxCalls});
  CHECK(trace.calls_of(step).empty());
  step.calls = static_cast<std::uint32_t>(created) & 0xFFFFFF;  // no call
  CHECK(trace.calls_of(step).empty());
}

TEST_CASE("names that differ little are told apart and found again") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  const auto name = [](int i) { return "layers." + std::to_string(i) + ".weight"; };
  std::vector<StringId> ids;
  for (int i = 0; i < 5000; ++i) ids.push_back(recorder->intern_string(name(i)));
  for (int i = 0; i < 5000; ++i) REQUIRE(recorder->intern_string(name(i)) == ids[static_cast<std::size_t>(i)]);
}

TEST_CASE("long strings are cut between characters") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  std::string text = "x";
  while (text.size() < 70000) text += "\u00e4";
  const std::string_view kept = recorder->string(recorder->intern_string(text));
  CHECK(kept.size() == 65535);
  CHECK(text.starts_with(kept));
}

TEST_CASE("sections are whole entries, apart from each other and inside the file") {
  const std::uint64_t requested = GENERATE(0, 1, 2 << 20, 3'000'001, 16 << 20, 32 << 20, 1ull << 40);
  const FileLayout layout = make_layout(requested);
  CHECK(layout.file_size >= kMinFileSize);
  CHECK(layout.file_size <= kMaxFileSize);
  std::uint64_t end = sizeof(FileHeader);
  for (std::size_t i = 0; i < kSectionCount; ++i) {
    const Section& section = layout.sections[i];
    CHECK(section.kind == static_cast<SectionKind>(i + 1));
    CHECK(section.offset == end);
    CHECK(section.offset % 4096 == 0);
    CHECK(section.size >= section.entry_size);
    end += section.size;
  }
  CHECK(end == layout.file_size);
  CHECK(layout[SectionKind::events].size >= layout.file_size / 4);
  if (requested == 0) {
    CHECK(layout.file_size == kDefaultFileSize);
    CHECK(layout.entries(SectionKind::sites) == 32768);
    CHECK(layout.entries(SectionKind::lineage) == 131072);
    CHECK(layout.entries(SectionKind::threads) == 256);
  }
}

TEST_CASE("checksums are CRC-32C") {
  const std::string_view text = "123456789";
  CHECK(crc32c(std::as_bytes(std::span(text))) == 0xE3069283u);
}

TEST_CASE("the file is named after rank and process, private, and of the size that was asked for") {
  const TemporaryDirectory directory;
  const EnvironmentVariable rank("RANK", "3");
  const EnvironmentVariable local("LOCAL_RANK", "1");
  const EnvironmentVariable world("WORLD_SIZE", "many");
  const mode_t mask = umask(0777);
  const auto recorder = open_recorder(directory.path() / "a b" / "c", 3 << 20);
  umask(mask);
  const fs::path expected = directory.path() / "a b" / "c" / ("rank3." + pid_text() + ".devsan");
  CHECK(recorder->path() == expected.string());
  struct stat status {};
  REQUIRE(stat(recorder->path(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  CHECK(status.st_size == 3 << 20);
  CHECK(status.st_blocks * 512 >= 3 << 20);
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.header().rank == 3);
  CHECK(trace.header().local_rank == 1);
  CHECK(trace.header().world_size == -1);
}

TEST_CASE("directories are made with their parents and for the owner alone") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path() / "a" / "b");
  for (const char* made : {"a", "a/b"}) {
    CHECK(fs::status(directory.path() / made).permissions() == fs::perms::owner_all);
  }
}

TEST_CASE("a name that is taken gets a suffix and what has it stays as it is") {
  const TemporaryDirectory directory;
  const std::string name = "rank-." + pid_text();
  const fs::path target = directory.path() / "precious";
  write_bytes(target, {std::byte{7}});
  fs::create_symlink(target, directory.path() / (name + ".devsan"));
  fs::create_symlink(directory.path() / "nothing", directory.path() / (name + "-1.devsan"));
  const auto second = open_recorder(directory.path());
  const auto third = open_recorder(directory.path());
  CHECK(fs::path(second->path()).filename() == name + "-2.devsan");
  CHECK(fs::path(third->path()).filename() == name + "-3.devsan");
  CHECK(bytes_of(target) == std::vector<std::byte>{std::byte{7}});
  CHECK_FALSE(fs::exists(directory.path() / "nothing"));
  add_numbered_meeting(*second, 2);
  add_numbered_meeting(*third, 3);
  CHECK(read_trace(*second).meetings().at(0).fixed.time_ns == 2);
  CHECK(read_trace(*third).meetings().at(0).fixed.time_ns == 3);
}

TEST_CASE("a relative directory stays where the process began") {
  const TemporaryDirectory directory;
  const fs::path before = fs::current_path();
  fs::current_path(directory.path());
  const auto recorder = open_recorder("out");
  fs::current_path(before);
  CHECK(fs::path(recorder->path()).is_absolute());
  CHECK(fs::exists(recorder->path()));
  CHECK(std::string(recorder->directory()) == (directory.path() / "out").string());
}

TEST_CASE("a directory that cannot be made is told of, with the reason") {
  const TemporaryDirectory directory;
  write_bytes(directory.path() / "file", {});
  const std::string too_long(5000, 'x');
  const std::pair<std::string, int> cases[] = {
      {(directory.path() / "file").string(), ENOTDIR},
      {(directory.path() / "file" / "sub").string(), ENOTDIR},
      {"/proc/self/nothing", ENOENT},
      {too_long, ENAMETOOLONG},
      {"/" + too_long, ENAMETOOLONG},
  };
  for (const auto& [path, error] : cases) {
    INFO(path);
    Recorder recorder;
    CHECK(recorder.open({path.c_str(), 0}) == OpenResult::cannot_create_directory);
    CHECK(recorder.last_errno() == error);
    CHECK(recorder.gave_up());
    CHECK_FALSE(recorder.active());
  }
}

TEST_CASE("opening keeps no descriptor and leaves errno alone") {
  const TemporaryDirectory directory;
  const auto descriptors = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = descriptors();
  errno = ERANGE;
  Recorder recorder;
  recorder.open({directory.path().c_str(), kMinFileSize});
  CHECK(errno == ERANGE);
  CHECK(descriptors() == before);
}

TEST_CASE("the first word on how a process ended stands, and nothing is recorded after it") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  recorder->close(CloseMark::executed);
  CHECK(read_trace(*recorder).header().close_mark == CloseMark::executed);
  CHECK(add_numbered_meeting(*recorder, 1) != nullptr);
  recorder->close(CloseMark::open);
  CHECK(read_trace(*recorder).header().close_mark == CloseMark::open);
  recorder->close(CloseMark::exited);
  recorder->close(CloseMark::quick_exited);
  CHECK(read_trace(*recorder).header().close_mark == CloseMark::exited);
  CHECK_FALSE(recorder->active());
  CHECK(add_numbered_meeting(*recorder, 2) == nullptr);
  CHECK_FALSE(recorder->reopen_in_child());
  CHECK(read_trace(*recorder).meetings().size() == 1);
}

TEST_CASE("a full file keeps what came first and counts what came later") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  std::int64_t kept = 0;
  while (add_numbered_meeting(*recorder, kept) != nullptr) ++kept;
  for (int i = 0; i < 9; ++i) CHECK(add_numbered_meeting(*recorder, kept) == nullptr);
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  CHECK(trace.lost_events() == 10);
  REQUIRE(trace.meetings().size() == static_cast<std::size_t>(kept));
  for (std::int64_t i = 0; i < kept; ++i) REQUIRE(trace.meetings()[static_cast<std::size_t>(i)].fixed.time_ns == i);
}

TEST_CASE("full tables count what found no room and keep what they have") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  const FileLayout layout = make_layout(kMinFileSize);
  const StringId file = recorder->intern_string("a.py");
  const auto sites = static_cast<std::int32_t>(layout.entries(SectionKind::sites));
  for (std::int32_t line = 1; line < sites + 5; ++line) {
    const Position here{file, StringId::none, line, line, 0, 1};
    CHECK((recorder->add_site({here, here}) == SiteId::none) == (line >= sites));
  }
  const auto nodes = static_cast<std::uint32_t>(layout.entries(SectionKind::lineage));
  for (std::uint32_t site = 1; site < nodes + 3; ++site) {
    recorder->add_lineage({LineageId::none, SiteId{site}, OperatorId{1}, DeviceSlot{1}, How::created, 0, {}});
  }
  const std::string text(60000, 'x');
  for (char c = 'a'; c <= 'z'; ++c) recorder->intern_string(text + c);
  for (int device = 0; device < 200; ++device) recorder->intern_device("d" + std::to_string(device));
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  CHECK(trace.header().sites_lost == 5);
  CHECK(trace.header().lineage_lost == 3);
  CHECK(trace.header().strings_lost >= 20);
  CHECK(trace.site(SiteId{static_cast<std::uint32_t>(sites) - 1})->user.line == sites - 1);
  CHECK(trace.lineage(LineageId{nodes - 1})->site == SiteId{nodes - 1});
  CHECK(recorder->intern_string("a.py") == file);
}

TEST_CASE("operators beyond the table are none") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  for (int i = 1; i < 8192; ++i) {
    REQUIRE(recorder->add_operator("aten::op" + std::to_string(i)) == static_cast<OperatorId>(i));
  }
  CHECK(recorder->add_operator("aten::one_more") == OperatorId::none);
  CHECK(recorder->add_operator("aten::op1") == OperatorId{1});
  CHECK(read_trace(*recorder).operator_name(OperatorId{8191}) == "aten::op8191");
}

TEST_CASE("when all rings are taken, those of dead threads are used again, the oldest first") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  const auto rings = make_layout(kMinFileSize).entries(SectionKind::threads);
  const auto alive = static_cast<std::uint32_t>(gettid());
  std::vector<ThreadRing*> taken;
  for (std::uint64_t i = 0; i < rings; ++i) {
    std::thread([&] {
      const bool live = i % 2 == 1;
      taken.push_back(recorder->acquire_ring(live ? alive : static_cast<std::uint32_t>(gettid()), "worker"));
    }).join();
  }
  CHECK(std::count(taken.begin(), taken.end(), nullptr) == 0);
  note_operator(*taken[0], OperatorId{1}, DeviceSlot::none, SiteId::none, 0);
  const std::uint32_t nobody = 1u << 30;
  CHECK(recorder->acquire_ring(nobody, "new") == taken[0]);
  CHECK(taken[0]->next == 0);
  CHECK(recorder->acquire_ring(nobody + 1, "new") == taken[2]);
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.threads().size() == rings);
  CHECK(trace.threads()[0].tid == nobody);
  CHECK(trace.threads()[0].name == "new");
  CHECK(trace.header().threads_lost == 0);
}

TEST_CASE("without a ring to be had a thread gets none, and is counted") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  const auto rings = make_layout(kMinFileSize).entries(SectionKind::threads);
  const auto alive = static_cast<std::uint32_t>(gettid());
  for (std::uint64_t i = 0; i < rings; ++i) REQUIRE(recorder->acquire_ring(alive, "worker") != nullptr);
  errno = 0;
  CHECK(recorder->acquire_ring(1u << 30, "one more") == nullptr);
  CHECK(errno == 0);
  CHECK(read_trace(*recorder).header().threads_lost == 1);
}

TEST_CASE("a source line is kept once") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  const StringId file = recorder->intern_string("a.py");
  recorder->add_source_line(file, 3, "first");
  const std::uint64_t used = read_trace(*recorder).header().events_used;
  recorder->add_source_line(file, 3, "second");
  recorder->add_source_line(file, -1, "no line");
  recorder->add_source_line(StringId::none, 3, "no file");
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.header().events_used == used);
  CHECK(trace.source_line(file, 3) == "first");
  CHECK(trace.source_line(file, 4).empty());
}

}  // namespace
}  // namespace devsan::trace::testing
