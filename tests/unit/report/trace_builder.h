// Writes traces as a traced process does, with the recorder itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "trace/reader.h"
#include "trace/recorder.h"

namespace devsan::report {

// An empty directory, gone with its contents at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct Spot {
  const char* file;
  int line;
  const char* function;
  const char* source = nullptr;
  int column = -1;
  int end_column = -1;
  std::uint32_t flags = 0;
};

struct EvidenceSketch {
  trace::EvidenceKind kind;
  std::uint8_t operand;  // its index; trace::kWholeFinding
  const char* text;
  Spot at = {"", 0, ""};  // without a file: no position
};

struct OperandSketch {
  const char* argument;
  const char* device;
  std::vector<std::int64_t> shape = {};
  const char* name = "";
  trace::NameKind is = trace::NameKind::unknown;
  std::uint8_t flags = 0;
  trace::LineageId lineage = trace::LineageId::none;
};

struct MeetingSketch {
  const char* op = "aten::add.Tensor";
  std::vector<Spot> frames = {};  // innermost first
  std::vector<OperandSketch> operands = {};
  std::uint32_t flags = trace::kRaised;
  const char* message = "Expected all tensors to be on the same device";
  std::uint32_t step = 0;
  trace::Phase phase = trace::Phase::forward;
  std::vector<Spot> forward_frames = {};
  std::vector<const char*> native_symbols = {};
  std::vector<EvidenceSketch> evidence = {};
};

struct TrafficSketch {
  trace::TrafficKind kind = trace::TrafficKind::wait;
  const char* op = "aten::item";
  std::vector<Spot> frames = {};  // innermost first
  std::vector<OperandSketch> operands = {};
  std::uint8_t flags = 0;
  std::uint64_t bytes = 0;
  std::uint32_t step = 0;
  trace::RaceKind race = trace::RaceKind::none;
  Spot cause = {"", 0, ""};
};

// One process and its trace.
class TraceBuilder {
 public:
  // `rank` -1: outside a distributed run.
  TraceBuilder(const std::filesystem::path& directory, int rank = -1);

  trace::Recorder& recorder() { return *recorder_; }
  trace::SiteId site(const Spot& spot);
  trace::LineageId lineage(trace::LineageId parent, trace::How how, const char* op, const char* device, const Spot& at);
  trace::MeetingPayload* meeting(const MeetingSketch& sketch);
  trace::TrafficPayload* traffic(const TrafficSketch& sketch);
  std::filesystem::path file() const { return recorder_->path(); }
  // Reads it back, as a report does.
  trace::TraceFile read() const;

 private:
  trace::Position position(const Spot& spot);
  std::vector<trace::FrameRecord> frames(const std::vector<Spot>& spots);
  trace::OperandRecord operand(const OperandSketch& sketch);

  std::unique_ptr<trace::Recorder> recorder_;
};

}  // namespace devsan::report
