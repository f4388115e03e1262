#include "trace_builder.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace devsan::report {
namespace fs = std::filesystem;

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (fs::temp_directory_path() / "devsan-report-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

TraceBuilder::TraceBuilder(const fs::path& directory, int rank) : recorder_(std::make_unique<trace::Recorder>()) {
  if (rank >= 0) {
    setenv("RANK", std::to_string(rank).c_str(), 1);
  } else {
    unsetenv("RANK");
  }
  const std::string name = directory.string();
  const auto result = recorder_->open({name.c_str(), std::size_t{2} << 20});
  unsetenv("RANK");
  if (result != trace::OpenResult::opened) throw std::runtime_error("the recorder did not open");
}

trace::Position TraceBuilder::position(const Spot& spot) {
  const trace::StringId file = recorder_->intern_string(spot.file);
  if (spot.source != nullptr) recorder_->add_source_line(file, spot.line, spot.source);
  return {file, recorder_->intern_string(spot.function), spot.line, spot.line, spot.column, spot.end_column};
}

trace::SiteId TraceBuilder::site(const Spot& spot) {
  const trace::Position at = position(spot);
  return recorder_->add_site({at, at});
}

trace::LineageId TraceBuilder::lineage(trace::LineageId parent, trace::How how, const char* op, const char* device,
                                       const Spot& at) {
  trace::LineageNode node{};
  node.parent = parent;
  node.site = site(at);
  node.op = recorder_->add_operator(op);
  node.device = recorder_->intern_device(device);
  node.how = how;
  node.depth = parent == trace::LineageId::none ? 0 : static_cast<std::uint8_t>(recorder_->lineage(parent).depth + 1);
  return recorder_->add_lineage(node);
}

std::vector<trace::FrameRecord> TraceBuilder::frames(const std::vector<Spot>& spots) {
  std::vector<trace::FrameRecord> records;
  for (const Spot& spot : spots) records.push_back({position(spot), spot.flags, 0});
  return records;
}

trace::OperandRecord TraceBuilder::operand(const OperandSketch& sketch) {
  trace::OperandRecord record{};
  record.argument = recorder_->intern_string(sketch.argument);
  record.name = recorder_->intern_string(sketch.name);
  record.dtype = recorder_->intern_string("float32");
  record.device = recorder_->intern_device(sketch.device);
  record.name_kind = sketch.is;
  record.flags = sketch.flags;
  record.dims = static_cast<std::uint8_t>(sketch.shape.size());
  record.lineage = sketch.lineage;
  std::copy_n(sketch.shape.begin(), std::min(sketch.shape.size(), record.sizes.size()), record.sizes.begin());
  return record;
}

trace::MeetingPayload* TraceBuilder::meeting(const MeetingSketch& sketch) {
  trace::MeetingPayload fixed{};
  fixed.flags = sketch.flags;
  fixed.time_ns = 1'700'000'000'500'000'000;
  fixed.message = recorder_->intern_string(sketch.message);
  if (!sketch.frames.empty()) fixed.site = site(sketch.frames.front());
  fixed.op = recorder_->add_operator(sketch.op);
  fixed.phase = sketch.phase;
  fixed.step = fixed.last_step = sketch.step;
  fixed.tid = 7;
  fixed.thread_name = recorder_->intern_string("MainThread");
  std::vector<trace::OperandRecord> operands;
  for (const OperandSketch& one : sketch.operands) operands.push_back(operand(one));
  std::vector<trace::NativeFrame> native;
  for (const char* symbol : sketch.native_symbols) {
    native.push_back({recorder_->intern_string("/usr/lib/libapp.so"), recorder_->intern_string(symbol), 0x40});
  }
  std::vector<trace::EvidenceRecord> evidence;
  for (const EvidenceSketch& one : sketch.evidence) {
    const bool placed = *one.at.file != 0;
    evidence.push_back(
        {placed ? position(one.at) : trace::Position{}, recorder_->intern_string(one.text), one.kind, one.operand, 0});
  }
  return recorder_->add_meeting(fixed, operands, frames(sketch.frames), frames(sketch.forward_frames), native,
                                evidence);
}

trace::TrafficPayload* TraceBuilder::traffic(const TrafficSketch& sketch) {
  trace::TrafficPayload fixed{};
  fixed.bytes = sketch.bytes;
  fixed.steps = 1;
  fixed.step = fixed.last_step = sketch.step;
  fixed.time_ns = 1'700'000'000'500'000'000;
  if (!sketch.frames.empty()) fixed.site = site(sketch.frames.front());
  if (*sketch.cause.file != 0) fixed.cause = site(sketch.cause);
  fixed.op = recorder_->add_operator(sketch.op);
  fixed.kind = sketch.kind;
  fixed.race = sketch.race;
  fixed.flags = sketch.flags;
  fixed.tid = 7;
  std::vector<trace::OperandRecord> operands;
  for (const OperandSketch& one : sketch.operands) operands.push_back(operand(one));
  return recorder_->add_traffic(fixed, operands, frames(sketch.frames));
}

trace::TraceFile TraceBuilder::read() const {
  auto opened = trace::TraceFile::open(file());
  if (auto* damage = std::get_if<trace::Damage>(&opened)) throw std::runtime_error(damage->reason);
  return std::move(std::get<trace::TraceFile>(opened));
}

}  // namespace devsan::report
