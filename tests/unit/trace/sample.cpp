#include "sample.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <sstream>

#include "trace/crc32c.h"

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

class Text {
 public:
  explicit Text(const TraceFile& trace) : trace_(trace) {}

  std::string all() {
    header();
    for (const auto& [key, value] : trace_.run_info()) out_ << "run: " << key << " = " << value << '\n';
    for (const Notice& notice : trace_.notices()) out_ << "notice: " << notice.text << " at " << notice.time_ns << '\n';
    for (const Meeting& meeting : trace_.meetings()) {
      this->meeting(meeting);
      if (const MeetingFacts* facts = trace_.facts_of(meeting)) this->facts(*facts);
    }
    for (const auto& [file, source] : trace_.source_files()) {
      out_ << "source: " << trace_.string(file) << " of " << source.size << " bytes, hash " << source.hash << ": "
           << source.text << '\n';
    }
    job();
    for (const ThreadTail& thread : trace_.threads()) this->thread(thread);
    for (const Damage& damage : trace_.damage()) {
      out_ << "damage: " << damage.offset << " +" << damage.bytes << ": " << damage.reason << '\n';
    }
    return out_.str();
  }

 private:
  void header() {
    const FileHeader& h = trace_.header();
    out_ << "format " << h.major_version << '.' << h.minor_version << ", pid " << h.pid << " of " << h.parent_pid
         << ", rank " << h.rank << " local " << h.local_rank << " of " << h.world_size << ", host " << trace_.host()
         << ", start " << h.start_time_ns << " ticks " << h.start_ticks << ", close mark "
         << static_cast<unsigned>(h.close_mark) << ", step " << h.step << ", optimizer steps " << h.optimizer_steps
         << ", lost " << h.strings_lost << '/' << h.sites_lost << '/' << h.lineage_lost << '/' << h.threads_lost << '/'
         << trace_.lost_events() << '\n';
  }

  void job() {
    for (const CollectiveGroup& group : trace_.collective_groups()) {
      out_ << "group: " << group.fixed.index << ' ' << trace_.string(group.fixed.name) << " of "
           << trace_.string(group.fixed.backend) << ", rank " << group.fixed.rank << " of " << group.fixed.size << ':';
      for (const std::int32_t rank : group.ranks) out_ << ' ' << rank;
      out_ << '\n';
    }
    for (const Failure& failure : trace_.failures()) {
      out_ << "failure: " << trace_.string(failure.fixed.type) << ": " << trace_.string(failure.fixed.message) << " at "
           << failure.fixed.time_ns << " step " << failure.fixed.step << '\n';
      frames("frame", failure.frames);
    }
    for (const WaitingStack& stack : trace_.waiting_stacks()) {
      out_ << "waiting: in " << stack.fixed.collective << " at " << stack.fixed.time_ns << '\n';
      frames("frame", stack.frames);
    }
  }

  void position(const Position& p) {
    out_ << trace_.string(p.file) << ':' << p.line << '-' << p.end_line << ':' << p.column << '-' << p.end_column
         << " in " << trace_.string(p.function) << " `" << trace_.source_line(p.file, p.line) << '`';
  }

  void site(SiteId id) {
    const std::optional<Site> site = trace_.site(id);
    if (!site) {
      out_ << " site none\n";
      return;
    }
    out_ << " site ";
    position(site->user);
    out_ << " <- ";
    position(site->innermost);
    out_ << '\n';
  }

  void frames(const char* what, const std::vector<FrameRecord>& frames) {
    for (const FrameRecord& frame : frames) {
      out_ << "  " << what << ' ';
      position(frame.position);
      out_ << " flags " << frame.flags << '\n';
    }
  }

  void meeting(const Meeting& meeting) {
    const MeetingPayload& f = meeting.fixed;
    out_ << "meeting: " << trace_.operator_name(f.op) << " '" << trace_.string(f.message) << "' repeats " << f.repeats
         << " last step " << f.last_step << " flags " << f.flags << " time " << f.time_ns << " phase "
         << static_cast<unsigned>(f.phase) << " step " << f.step << " tid " << f.tid << ' '
         << trace_.string(f.thread_name) << '\n';
    out_ << "  at";
    site(f.site);
    for (const OperandRecord& operand : meeting.operands) this->operand(operand);
    frames("frame", meeting.frames);
    frames("forward", meeting.forward_frames);
    for (const EvidenceRecord& evidence : meeting.evidence) this->evidence(evidence);
    for (const NativeFrame& frame : meeting.native_frames) {
      out_ << "  native " << trace_.string(frame.module) << ' ' << trace_.string(frame.symbol) << '+' << frame.offset
           << '\n';
    }
  }

  void facts(const MeetingFacts& facts) {
    out_ << "  facts: flags " << facts.fixed.flags << " in " << facts.fixed.microseconds << " us\n";
    for (const ObjectFact& o : facts.objects) {
      out_ << "  object " << static_cast<unsigned>(o.kind) << ' ' << trace_.string(o.type) << " '"
           << trace_.string(o.text) << "' " << o.number << " flags " << static_cast<unsigned>(o.flags) << " on "
           << trace_.device_name(o.device) << " operand " << static_cast<int>(o.operand) << " storage " << o.storage
           << " lineage " << trace_.lineage_chain(o.lineage).size() << " code " << trace_.string(o.file) << ':'
           << o.line << " in " << trace_.string(o.function) << '\n';
    }
    for (const LinkFact& l : facts.links) {
      out_ << "  link " << l.from << " -> " << l.to << " kind " << static_cast<unsigned>(l.kind) << ' '
           << trace_.string(l.name) << ' ' << l.index << " of " << facts.objects[l.from].line
           << facts.objects[l.to].line << '\n';
    }
    for (const VariableFact& v : facts.variables) {
      out_ << "  variable " << v.frame << ' ' << trace_.string(v.name) << " kind " << static_cast<unsigned>(v.kind)
           << " = " << v.object << " of line " << facts.objects[v.object].line << '\n';
    }
    for (const CopyFact& c : facts.copies) {
      out_ << "  copy " << static_cast<unsigned>(c.kind) << " of " << c.storage << " to "
           << trace_.device_name(c.device) << " calls " << static_cast<std::uint32_t>(c.calls);
      site(c.site);
    }
  }

  void operand(const OperandRecord& o) {
    out_ << "  operand " << trace_.string(o.argument) << " = " << trace_.string(o.name) << ": "
         << trace_.string(o.dtype) << " on " << trace_.device_name(o.device) << " kind "
         << static_cast<unsigned>(o.name_kind) << " flags " << static_cast<unsigned>(o.flags) << " of "
         << o.storage_bytes << " bytes, " << static_cast<unsigned>(o.dims) << " dims";
    for (const std::int64_t size : o.sizes) out_ << ' ' << size;
    out_ << '\n';
    for (const LineageNode& node : trace_.lineage_chain(o.lineage)) {
      out_ << "    how " << static_cast<unsigned>(node.how) << " by " << trace_.operator_name(node.op) << " on "
           << trace_.device_name(node.device) << " depth " << static_cast<unsigned>(node.depth);
      site(node.site);
    }
  }

  void evidence(const EvidenceRecord& e) {
    out_ << "  evidence " << static_cast<unsigned>(e.kind) << " of operand " << static_cast<unsigned>(e.operand) << ": "
         << trace_.string(e.text) << " at ";
    position(e.at);
    out_ << '\n';
  }

  void thread(const ThreadTail& thread) {
    out_ << "thread " << thread.tid << ' ' << thread.name << ": " << thread.operators << " operators\n";
    for (const RingEntry& entry : thread.last) {
      out_ << "  " << trace_.operator_name(entry.op) << " on " << trace_.device_name(entry.device) << " step "
           << entry.step << " site " << static_cast<std::uint32_t>(entry.site) << '\n';
    }
  }

  const TraceFile& trace_;
  std::ostringstream out_;
};

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

std::string describe(const TraceFile& trace) {
  return Text(trace).all();
}

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
