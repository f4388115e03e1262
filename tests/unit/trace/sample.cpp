#include "sample.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>

#include "trace/crc32c.h"
#include "trace/memory_series.h"

namespace devsan::trace::testing {

namespace fs = std::filesystem;

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (fs::temp_directory_path() / "devsan-trace-XXXXXX").string();
  REQUIRE(mkdtemp(name.data()) != nullptr);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::unique_ptr<Recorder> open_recorder(const fs::path& directory, std::size_t file_size) {
  auto recorder = std::make_unique<Recorder>();
  REQUIRE(recorder->open({directory.c_str(), file_size}) == OpenResult::opened);
  return recorder;
}

TraceFile read_trace(const fs::path& file) {
  auto result = TraceFile::open(file);
  if (const Damage* damage = std::get_if<Damage>(&result)) FAIL(damage->reason);
  return std::get<TraceFile>(std::move(result));
}

TraceFile read_trace(const Recorder& recorder) {
  return read_trace(fs::path(recorder.path()));
}

std::vector<fs::path> traces_in(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::byte> bytes_of(const fs::path& file) {
  std::vector<std::byte> bytes(fs::file_size(file));
  std::ifstream stream(file, std::ios::binary);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  REQUIRE(stream.good());
  return bytes;
}

void write_bytes(const fs::path& file, const std::vector<std::byte>& bytes) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

MeetingPayload* add_numbered_meeting(Recorder& recorder, std::int64_t number) {
  MeetingPayload fixed{};
  fixed.time_ns = number;
  fixed.message = recorder.intern_string("message " + std::to_string(number));
  OperandRecord operand{};
  operand.storage_bytes = static_cast<std::uint64_t>(number);
  return recorder.add_meeting(fixed, {&operand, 1}, {}, {}, {});
}

void note_operator(ThreadRing& ring, OperatorId op, DeviceSlot device, SiteId site, std::uint32_t step) {
  const std::uint64_t count = ring.next;
  ring.entries[count % kRingEntries] = {op, device, 0, site, step, static_cast<std::uint32_t>(count)};
  std::atomic_ref(ring.next).store(count + 1, std::memory_order_release);
}

namespace {

Position at_line(Recorder& recorder, const char* file, const char* function, std::int32_t line) {
  return {recorder.intern_string(file), recorder.intern_string(function), line, line, 4, 30};
}

FrameRecord frame(const Position& position, std::uint32_t flags) {
  return {position, flags, 0};
}

OperandRecord operand(Recorder& recorder, const char* argument, const char* name, const char* device) {
  OperandRecord record{};
  record.argument = recorder.intern_string(argument);
  record.name = recorder.intern_string(name);
  record.dtype = recorder.intern_string("float32");
  record.device = recorder.intern_device(device);
  record.name_kind = NameKind::parameter;
  record.flags = kRequiresGrad;
  record.dims = 2;
  record.sizes = {4, 1024};
  record.storage_bytes = 16384;
  return record;
}

LineageId record_lineage(Recorder& recorder, OperatorId op, SiteId site) {
  const DeviceSlot cpu = recorder.intern_device("cpu");
  const DeviceSlot cuda = recorder.intern_device("cuda:0");
  const LineageId origin = recorder.add_lineage({LineageId::none, site, op, cpu, How::created, 0, {}});
  const LineageId moved = recorder.add_lineage({origin, site, op, cuda, How::moved, 1, {}});
  return recorder.add_lineage({moved, site, op, cuda, How::derived, 2, {}});
}

// Around the sample's meeting: a module that keeps its second operand in a dictionary, and the text of its file.
void record_sample_facts(Recorder& recorder, const MeetingPayload* meeting, SiteId site) {
  const StringId file = recorder.intern_string("/home/u/train.py");
  const LineageId lineage{2};
  ObjectFact module{};
  module.kind = ObjectKind::module;
  module.operand = kNoOperand;
  module.type = recorder.intern_string("__main__.Net");
  module.file = file;
  module.function = recorder.intern_string("Net.forward");
  module.line = 40;
  ObjectFact dict{};
  dict.kind = ObjectKind::dict;
  dict.flags = kObjectCut | kHasNumber;
  dict.operand = kNoOperand;
  dict.number = 100'000;
  ObjectFact tensor{};
  tensor.kind = ObjectKind::tensor;
  tensor.flags = kObjectLeaf;
  tensor.device = recorder.intern_device("cuda:0");
  tensor.operand = 1;
  tensor.lineage = lineage;
  tensor.storage = 1;
  const ObjectFact objects[] = {module, dict, tensor};
  const StringId name = recorder.intern_string("tables");
  const LinkFact links[] = {{0, 1, name, -1, FactLinkKind::attribute, {}},
                            {1, 2, StringId::none, 17, FactLinkKind::numbered_entry, {}}};
  const VariableFact variables[] = {{1, 0, recorder.intern_string("self"), VariableKind::local, {}}};
  const CopyFact copies[] = {{1, site, LineageId::none, CopyKind::moved_away, recorder.intern_device("cpu"), 0}};
  FactsPayload fixed{};
  fixed.flags = kFactsCut;
  fixed.microseconds = 123;
  recorder.add_facts(meeting, fixed, objects, links, variables, copies);
  if (recorder.wants_source_file(file)) recorder.add_source_file(file, "import torch\n\nnet = 1", true);
}

}  // namespace

// The records of a job with several ranks, without the ring, which is large.
void record_sample_job(Recorder& recorder, std::span<const FrameRecord> frames) {
  CollectiveGroupPayload group{};
  group.index = 1;
  group.rank = 1;
  group.size = 3;
  group.name = recorder.intern_string("7");
  group.backend = recorder.intern_string("nccl");
  recorder.add_collective_group(group, std::vector<std::int32_t>{2, 5, 8});
  FailurePayload failure{};
  failure.time_ns = 1'700'000'000'000'000'001;
  failure.type = recorder.intern_string("ValueError");
  failure.message = recorder.intern_string("no more data");
  failure.step = 17;
  recorder.add_failure(failure, frames);
  WaitingStackPayload waiting{};
  waiting.time_ns = 1'700'000'000'000'000'002;
  waiting.collective = 1188;
  recorder.add_waiting_stack(waiting, frames);
}

void record_sample(Recorder& recorder) {
  recorder.add_run_info("torch", "2.13.0");
  recorder.add_run_info("command", "python train.py");
  recorder.add_notice("7 operators are not seen");
  const OperatorId mul = recorder.add_operator("aten::mul_.Tensor");
  const OperatorId to = recorder.add_operator("aten::to.device");
  const Position user = at_line(recorder, "/home/u/train.py", "Net.forward", 42);
  const Position inner = at_line(recorder, "/lib/torch/nn/functional.py", "linear", 7);
  const SiteId site = recorder.add_site({user, inner});
  recorder.add_source_line(user.file, 42, "    x.mul_(self.sc\u00e4le)");
  recorder.set_step(17);
  recorder.count_optimizer_step();

  MeetingPayload fixed{};
  fixed.time_ns = 1'700'000'000'000'000'000;
  fixed.message = recorder.intern_string("Expected all tensors to be on the same device");
  fixed.flags = kRaised;
  fixed.site = site;
  fixed.op = mul;
  fixed.phase = Phase::optimizer;
  fixed.step = 17;
  fixed.tid = 4711;
  fixed.thread_name = recorder.intern_string("MainThread");
  OperandRecord operands[] = {operand(recorder, "self", "self.bias", "cpu"),
                              operand(recorder, "other", "scale", "cuda:0")};
  operands[1].lineage = record_lineage(recorder, to, site);
  const FrameRecord frames[] = {frame(inner, kTorchFrame), frame(user, 0)};
  const FrameRecord forward[] = {frame(user, 0)};
  const EvidenceRecord evidence[] = {
      {user, recorder.intern_string("read 16 of 4096"), EvidenceKind::host_access, 1, 0},
      {{}, recorder.intern_string("write 0 of 64"), EvidenceKind::host_access, kWholeFinding, 0}};
  MeetingPayload* const first = recorder.add_meeting(fixed, operands, frames, forward, {}, evidence);
  Recorder::bump_meeting(first, 18);
  Recorder::bump_meeting(first, 19);
  Recorder::set_meeting_flags(first, kHandled);
  record_sample_facts(recorder, first, site);
  record_sample_job(recorder, frames);

  fixed.message = StringId::none;
  fixed.flags = kNoOperands;
  const NativeFrame native[] = {{recorder.intern_string("libmodel.so"), recorder.intern_string("forward()"), 0x12},
                                {recorder.intern_string("libmodel.so"), StringId::none, 0x3456}};
  recorder.add_meeting(fixed, {}, {}, {}, native);

  ThreadRing* const ring = recorder.acquire_ring(4711, "MainThread");
  REQUIRE(ring != nullptr);
  for (std::uint32_t i = 0; i < kRingEntries + 8; ++i) {
    note_operator(*ring, i % 2 == 0 ? mul : to, DeviceSlot{static_cast<std::uint8_t>(1 + i % 2)}, site, i / 100);
  }
}

namespace {

void record_sample_steps(Recorder& recorder) {
  StepSeriesPayload* const series = recorder.add_step_series();
  DataWaitsPayload* const waits = recorder.add_data_waits();
  REQUIRE(waits != nullptr);
  for (std::uint32_t step = 0; step < 3; ++step) {
    const std::int64_t begin = 1'700'000'000'000'000'000 + std::int64_t{step} * 1'000;
    add_sample(series, {begin, step, 0, 100 + step, 200, 3, 40, 500});
    add_sample(waits, {843 + step, step, 0, 10, step, 400});
  }
  store_sample(series->current, {1'700'000'000'000'003'000, 3, 4, 77, 0, 0, 0, 0});
  store_sample(waits->current, {77, 3, 4, 9, 0, 0});
}

void record_sample_peak(Recorder& recorder, OperatorId op, SiteId site) {
  LiveAtPeak look{};
  look.time_ns = 1'700'000'000'000'000'003;
  look.allocated = 5'000;
  look.reserved = 8'192;
  look.listed = 4'800;
  look.step = 2;
  look.moment = PeakMoment::backward_ended;
  look.kinds[static_cast<std::size_t>(LiveKind::parameter)] = {4'000, 2};
  look.kinds[static_cast<std::size_t>(LiveKind::activation)] = {800, 1};
  look.rows = 2;
  look.lines[0] = {4'000, 2, site, recorder.intern_string("encoder"), op, LiveKind::parameter, 0};
  look.lines[1] = {800, 1, site, StringId::none, op, LiveKind::activation, 0};
  PeakMemoryPayload* const peak = recorder.add_peak_memory(recorder.intern_device("cuda:0"));
  REQUIRE(peak != nullptr);
  peak->peak = 6'000;
  peak->peak_step = 1;
  peak->in_backward = 1;
  store_look(peak, look);
}

}  // namespace

void record_sample_of_training(Recorder& recorder) {
  const OperatorId op = recorder.add_operator("c10d::allreduce_");
  const Position user = at_line(recorder, "/home/u/train.py", "train", 50);
  const SiteId site = recorder.add_site({user, user});
  record_sample_steps(recorder);
  record_sample_peak(recorder, op, site);
  CollectiveEntry wait{};
  wait.facts = {.entered_ns = 1'700'000'000'000'000'004,
                .sequence = 1188,
                .bytes = 4'096,
                .other_bytes = 0,
                .group = 1,
                .step = 2,
                .tid = 4711,
                .site = site,
                .dtype = recorder.intern_string("float32"),
                .peer = -1,
                .op = op,
                .device = recorder.intern_device("cuda:0"),
                .phase = Phase::backward,
                .reserved = 0};
  wait.finished_ns = 1'700'000'003'000'000'000;
  wait.wait_ns = 1'700'000'000'000'000'005;
  wait.state = CollectiveState::finished;
  wait.number = 7;
  recorder.add_long_wait(wait);
}

namespace {

template <class Value>
Value& value_at(std::vector<std::byte>& bytes, std::uint64_t offset) {
  return *reinterpret_cast<Value*>(bytes.data() + offset);
}

// Notices carry the time at which they were made.
void set_clock(std::vector<std::byte>& bytes, const Section& events) {
  for (std::uint64_t at = events.offset; at < events.offset + events.size;) {
    RecordHeader& record = value_at<RecordHeader>(bytes, at);
    if (record.kind == RecordKind::Notice) {
      value_at<NoticePayload>(bytes, at + sizeof(record)).time_ns = 1'700'000'000'123'456'789;
      record.checksum = crc32c(std::span(bytes).subspan(at + sizeof(record), record.size - sizeof(record)));
    }
    at += record.size;
  }
}

}  // namespace

std::vector<std::byte> compacted(std::vector<std::byte> trace) {
  const FileHeader old = value_at<FileHeader>(trace, 0);
  const std::uint64_t used[kSectionCount] = {old.strings_used,
                                             old.operators_used * sizeof(StringId),
                                             old.sites_used * sizeof(Site),
                                             old.lineage_used * sizeof(LineageNode),
                                             old.threads_used * sizeof(ThreadRing),
                                             old.events_used};
  std::vector<std::byte> out(trace.begin(), trace.begin() + sizeof(FileHeader));
  for (std::size_t i = 0; i < kSectionCount; ++i) {
    const auto begin = trace.begin() + static_cast<std::ptrdiff_t>(old.sections[i].offset);
    const std::uint64_t offset = out.size();
    out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(used[i]));
    value_at<FileHeader>(out, 0).sections[i] = {old.sections[i].kind, old.sections[i].entry_size, offset, used[i]};
    out.resize((out.size() + 7) / 8 * 8);
  }
  FileHeader& header = value_at<FileHeader>(out, 0);
  set_clock(out, header.sections[kSectionCount - 1]);
  header.file_size = out.size();
  header.pid = 1234;
  header.parent_pid = 1233;
  header.start_time_ns = 1'700'000'000'000'000'000;
  header.start_ticks = 5678;
  header.host = {'h', 'o', 's', 't'};
  return out;
}

}  // namespace devsan::trace::testing
