// Files that are damaged, foreign, or made to do harm.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <random>

#include "sample.h"
#include "trace/memory_series.h"

namespace devsan::trace::testing {
namespace {

namespace fs = std::filesystem;

using Bytes = std::vector<std::byte>;

Bytes sample_bytes() {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  record_sample(*recorder);
  return compacted(bytes_of(recorder->path()));
}

const Bytes& sample() {
  static const Bytes bytes = sample_bytes();
  return bytes;
}

FileHeader header_of(const Bytes& bytes) {
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

template <class Value>
void put(Bytes& bytes, std::uint64_t offset, Value value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

const Section& section(const FileHeader& header, SectionKind kind) {
  return header.sections[static_cast<std::size_t>(kind) - 1];
}

// In memory: thousands of files on a disk take minutes.
class DamagedFile {
 public:
  DamagedFile() : fd_(memfd_create("devsan-trace", MFD_CLOEXEC)) { REQUIRE(fd_ >= 0); }
  ~DamagedFile() { close(fd_); }
  DamagedFile(const DamagedFile&) = delete;
  DamagedFile& operator=(const DamagedFile&) = delete;

  std::variant<TraceFile, Damage> open(const Bytes& bytes) const {
    REQUIRE(ftruncate(fd_, 0) == 0);
    REQUIRE(pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    return TraceFile::open("/proc/self/fd/" + std::to_string(fd_));
  }
  TraceFile readable(const Bytes& bytes) const {
    auto result = open(bytes);
    if (const Damage* damage = std::get_if<Damage>(&result)) FAIL(damage->reason);
    return std::get<TraceFile>(std::move(result));
  }
  std::string refusal(const Bytes& bytes) const {
    const auto result = open(bytes);
    const Damage* const damage = std::get_if<Damage>(&result);
    return damage != nullptr ? damage->reason : "";
  }

 private:
  int fd_;
};

bool mentions(const std::vector<Damage>& damage, const std::string& word) {
  return std::any_of(damage.begin(), damage.end(),
                     [&](const Damage& one) { return one.reason.find(word) != std::string::npos; });
}

TEST_CASE("the compacted sample is sound") {
  const DamagedFile file;
  const TraceFile trace = file.readable(sample());
  CHECK(trace.damage().empty());
  CHECK(trace.meetings().size() == 2);
}

TEST_CASE("a file that is no trace is refused with the reason") {
  const DamagedFile file;
  CHECK(file.refusal({}).find("empty") != std::string::npos);
  CHECK(file.refusal(Bytes(5, std::byte{'D'})).find("not a devsan trace") != std::string::npos);
  CHECK(file.refusal(Bytes(9000, std::byte{'x'})).find("not a devsan trace") != std::string::npos);
  CHECK(file.refusal(Bytes(2 << 20)).find("never begun") != std::string::npos);
  Bytes start = sample();
  start.resize(10);
  CHECK(file.refusal(start).find("cut off") != std::string::npos);
  start.resize(4095);
  CHECK_FALSE(file.refusal(start).empty());
}

TEST_CASE("what is no readable file is refused with the reason") {
  const TemporaryDirectory directory;
  const auto reason = [](const fs::path& path) { return std::get<Damage>(TraceFile::open(path)).reason; };
  CHECK(reason(directory.path() / "missing").find("No such file") != std::string::npos);
  CHECK(reason(directory.path()).find("directory") != std::string::npos);
  REQUIRE(mkfifo((directory.path() / "pipe").c_str(), 0600) == 0);
  CHECK(reason(directory.path() / "pipe").find("not a regular file") != std::string::npos);
  write_bytes(directory.path() / "huge", sample());
  fs::resize_file(directory.path() / "huge", (64u << 20) + 1);
  CHECK(reason(directory.path() / "huge").find("larger than any") != std::string::npos);
}

TEST_CASE("another major version is refused, saying which devsan is needed") {
  const DamagedFile file;
  Bytes bytes = sample();
  put<std::uint16_t>(bytes, offsetof(FileHeader, major_version), 2);
  CHECK(file.refusal(bytes).find("format 2." + std::to_string(kMinorVersion)) != std::string::npos);
  CHECK(file.refusal(bytes).find("a newer devsan") != std::string::npos);
  put<std::uint16_t>(bytes, offsetof(FileHeader, major_version), 0);
  CHECK(file.refusal(bytes).find("an older devsan") != std::string::npos);
}

TEST_CASE("a kind of a newer minor version is passed over, one of this version is damage") {
  const DamagedFile file;
  Bytes bytes = sample();
  const std::uint64_t events = section(header_of(bytes), SectionKind::events).offset;
  put<std::uint16_t>(bytes, events + offsetof(RecordHeader, kind), 999);
  TraceFile trace = file.readable(bytes);
  CHECK(trace.damage().size() == 1);
  put<std::uint16_t>(bytes, offsetof(FileHeader, minor_version), kMinorVersion + 1);
  trace = file.readable(bytes);
  CHECK(trace.damage().empty());
  CHECK(trace.run_info().size() == 1);
  CHECK(trace.meetings().size() == 2);
}

TEST_CASE("a file that is cut off gives what is whole") {
  const DamagedFile file;
  const std::uint64_t events = section(header_of(sample()), SectionKind::events).offset;
  Bytes bytes = sample();
  bytes.resize(bytes.size() - 8);
  TraceFile trace = file.readable(bytes);
  CHECK(trace.meetings().size() == 1);
  CHECK(mentions(trace.damage(), "cut off"));
  CHECK(trace.damage()[0].bytes == 8);
  bytes.resize(events);
  trace = file.readable(bytes);
  CHECK(trace.meetings().empty());
  CHECK(trace.threads().size() == 1);
  CHECK(trace.operator_name(OperatorId{1}) == "aten::mul_.Tensor");
  bytes.resize(sizeof(FileHeader));
  trace = file.readable(bytes);
  CHECK(trace.threads().empty());
  CHECK(trace.string(StringId{4}).empty());
}

TEST_CASE("one damaged record is told of and hides no other") {
  const DamagedFile file;
  const FileHeader header = header_of(sample());
  const Section events = section(header, SectionKind::events);
  const auto records_in = [](const TraceFile& trace) {
    return trace.run_info().size() + trace.notices().size() + trace.meetings().size() +
           (trace.source_line(trace.meetings().empty() ? StringId::none : trace.site(SiteId{1})->user.file, 42).empty()
                ? 0
                : 1);
  };
  REQUIRE(records_in(file.readable(sample())) == 6);
  for (std::uint64_t at = events.offset; at < events.offset + events.size; at += 4) {
    Bytes bytes = sample();
    bytes[at] ^= std::byte{0x10};
    const TraceFile trace = file.readable(bytes);
    INFO("byte " << at);
    REQUIRE(records_in(trace) >= 5);
    REQUIRE((records_in(trace) == 6 || trace.damage().size() == 1));
  }
}

TEST_CASE("room that was taken but not filled is skipped") {
  const DamagedFile file;
  const Section events = section(header_of(sample()), SectionKind::events);
  Bytes bytes = sample();
  RecordHeader second;
  const std::uint64_t at = events.offset + sizeof(RecordHeader) + sizeof(RunInfoPayload);
  std::memcpy(&second, bytes.data() + at, sizeof(second));
  SECTION("with its size told") {
    put<std::uint64_t>(bytes, at + offsetof(RecordHeader, kind), 0);
  }
  SECTION("with nothing told") {
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), second.size, std::byte{});
  }
  const TraceFile trace = file.readable(bytes);
  CHECK(trace.run_info().size() == 1);
  CHECK(trace.notices().size() == 1);
  CHECK(trace.meetings().size() == 2);
  REQUIRE(trace.damage().size() == 1);
  CHECK(trace.damage()[0].offset == at);
  CHECK(trace.damage()[0].bytes == second.size);
  CHECK(trace.damage()[0].reason.find("when the process ended") != std::string::npos);
}

TEST_CASE("counters beyond their section are told of and cost nothing") {
  const DamagedFile file;
  const std::string expected = describe(file.readable(sample()));
  Bytes bytes = sample();
  put<std::uint64_t>(bytes, offsetof(FileHeader, strings_used), ~0ull);
  put<std::uint32_t>(bytes, offsetof(FileHeader, operators_used), ~0u);
  put<std::uint32_t>(bytes, offsetof(FileHeader, sites_used), ~0u);
  put<std::uint32_t>(bytes, offsetof(FileHeader, lineage_used), ~0u);
  put<std::uint32_t>(bytes, offsetof(FileHeader, threads_used), ~0u);
  put<std::uint64_t>(bytes, offsetof(FileHeader, events_used), ~0ull);
  const TraceFile trace = file.readable(bytes);
  CHECK(trace.damage().size() == kSectionCount);
  CHECK(mentions(trace.damage(), "section of events"));
  CHECK(describe(trace).starts_with(expected));
}

TEST_CASE("counters that are too small hide nothing") {
  const DamagedFile file;
  const std::string expected = describe(file.readable(sample()));
  Bytes bytes = sample();
  put<std::uint64_t>(bytes, offsetof(FileHeader, strings_used), 0);
  put<std::uint32_t>(bytes, offsetof(FileHeader, operators_used), 0);
  put<std::uint32_t>(bytes, offsetof(FileHeader, sites_used), 0);
  put<std::uint32_t>(bytes, offsetof(FileHeader, lineage_used), 0);
  put<std::uint32_t>(bytes, offsetof(FileHeader, threads_used), 0);
  put<std::uint64_t>(bytes, offsetof(FileHeader, events_used), 0);
  CHECK(describe(file.readable(bytes)) == expected);
}

TEST_CASE("a chain of lineage that turns on itself ends") {
  const DamagedFile file;
  Bytes bytes = sample();
  const std::uint64_t nodes = section(header_of(bytes), SectionKind::lineage).offset;
  put<std::uint32_t>(bytes, nodes + sizeof(LineageNode), 3);  // the origin's parent
  const TraceFile trace = file.readable(bytes);
  CHECK(trace.lineage_chain(LineageId{3}).size() == 3);
}

TEST_CASE("calls that turn on themselves end") {
  const DamagedFile file;
  Bytes bytes = sample();
  const std::uint64_t nodes = section(header_of(bytes), SectionKind::lineage).offset;
  put<std::uint8_t>(bytes, nodes + sizeof(LineageNode) + offsetof(LineageNode, how), 4);
  put<std::uint32_t>(bytes, nodes + sizeof(LineageNode), 1);  // within itself
  put<std::uint32_t>(bytes, nodes + 2 * sizeof(LineageNode) + offsetof(LineageNode, how) + 1, 1 << 8);
  const TraceFile trace = file.readable(bytes);
  CHECK(trace.calls_of(*trace.lineage(LineageId{2})).size() == 1);
}

TEST_CASE("what is made of one trace is bounded, however often its texts are asked for") {
  const DamagedFile file;
  const TraceFile trace = file.readable(sample());
  const StringId message = trace.meetings()[0].fixed.message;
  const std::uint64_t size = trace.string(message).size();
  REQUIRE(size > 0);
  std::uint64_t made = 0;
  while (!trace.is_used_up()) made += trace.string(message).size();
  CHECK(made <= TraceFile::kMostMade);
  CHECK(trace.string(message).empty());
  CHECK_FALSE(trace.site(SiteId{1}));
}

TEST_CASE("times are read so that differences and sums of two of them exist") {
  static constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max() / 2;
  const auto [told, read] = GENERATE(table<std::int64_t, std::int64_t>({
      {std::numeric_limits<std::int64_t>::min(), 0},
      {-1, 0},
      {1'700'000'000'000'000'000, 1'700'000'000'000'000'000},
      {std::numeric_limits<std::int64_t>::max(), kLatest},
  }));
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  add_numbered_meeting(*recorder, told);
  CollectiveEntry wait{};
  wait.facts.entered_ns = wait.finished_ns = wait.wait_ns = told;
  wait.facts.group = 1;
  wait.state = CollectiveState::finished;
  wait.number = 1;
  recorder->add_long_wait(wait);
  store_sample(recorder->add_step_series()->latest, StepTime{told, 1, 1, 0, 0, 0, 0, 0});
  Bytes bytes = bytes_of(recorder->path());
  put(bytes, offsetof(FileHeader, start_time_ns), told);
  const TraceFile trace = DamagedFile().readable(bytes);
  CHECK(trace.header().start_time_ns == read);
  CHECK(trace.meetings().at(0).fixed.time_ns == read);
  CHECK(trace.step_series().steps.at(0).begin_ns == read);
  const CollectiveEntry& long_wait = trace.long_waits().at(0);
  CHECK(long_wait.facts.entered_ns == read);
  CHECK(long_wait.finished_ns == read);
  CHECK(long_wait.wait_ns == read);
}

TEST_CASE("nothing in a file makes the reader look elsewhere, crash or run on") {
  const DamagedFile file;
  std::mt19937 random(4711);
  const auto try_it = [&](const Bytes& bytes) {
    const auto result = file.open(bytes);
    const TraceFile* const trace = std::get_if<TraceFile>(&result);
    return trace != nullptr ? describe(*trace).size() : std::get<Damage>(result).reason.size();
  };
  SECTION("with single bytes changed") {
    for (int round = 0; round < 3000; ++round) {
      Bytes bytes = sample();
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
      REQUIRE(try_it(bytes) > 0);
    }
  }
  SECTION("with single bytes of the header changed") {
    for (int round = 0; round < 2000; ++round) {
      Bytes bytes = sample();
      bytes[random() % 848] = static_cast<std::byte>(random());
      REQUIRE(try_it(bytes) > 0);
    }
  }
  SECTION("with many words changed") {
    for (int round = 0; round < 1000; ++round) {
      Bytes bytes = sample();
      const std::size_t from = round % 2 == 0 ? 16 : sizeof(FileHeader);
      for (std::size_t changes = 1 + random() % 200; changes > 0; --changes) {
        put<std::uint32_t>(bytes, from + random() % (bytes.size() - from - 4),
                           static_cast<std::uint32_t>(random() >> random() % 32));
      }
      REQUIRE(try_it(bytes) > 0);
    }
  }
  SECTION("cut at any place") {
    for (int round = 0; round < 1000; ++round) {
      Bytes bytes = sample();
      bytes.resize(random() % bytes.size());
      REQUIRE(try_it(bytes) > 0);
    }
  }
}

TEST_CASE("a log of nothing but beginnings of long records is given up on, soon") {
  const DamagedFile file;
  Bytes bytes = sample();
  FileHeader header = header_of(bytes);
  Section& events = header.sections[kSectionCount - 1];
  events.size = 8 << 20;
  header.events_used = events.size;
  header.file_size = events.offset + events.size;
  put(bytes, 0, header);
  bytes.resize(header.file_size);
  for (std::uint64_t at = 0; at + sizeof(RecordHeader) <= events.size; at += sizeof(RecordHeader)) {
    const auto rest = static_cast<std::uint32_t>(events.size - at);
    put(bytes, events.offset + at, RecordHeader{kRecordSync, rest, RecordKind::Notice, 0, 0});
  }
  const TraceFile trace = file.readable(bytes);
  CHECK(trace.notices().empty());
  CHECK(trace.damage().size() == 1);
}

TEST_CASE("of very many damaged places the first are told of and the others counted") {
  const DamagedFile file;
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  for (int i = 0; i < 500; ++i) add_numbered_meeting(*recorder, i);
  Bytes bytes = bytes_of(recorder->path());
  const FileHeader header = header_of(bytes);
  const std::uint64_t record = header.events_used / 500;
  for (int i = 0; i < 500; i += 2) {
    bytes[section(header, SectionKind::events).offset + i * record + record - 1] ^= std::byte{1};
  }
  const TraceFile trace = file.readable(bytes);
  CHECK(trace.meetings().size() == 250);
  CHECK(trace.damage().size() == 51);
  CHECK(mentions(trace.damage(), "and 200 more such places"));
}

}  // namespace
}  // namespace devsan::trace::testing
