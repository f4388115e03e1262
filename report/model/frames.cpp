#include "report/model/frames.h"

#include <algorithm>

#include "report/model/statement_lines.h"
#include "trace/code_paths.h"

namespace devsan::report {
namespace {

// Numbers beyond are damage, and could not be counted on from.
constexpr int kMostLines = 1 << 30;

int sound_line(std::int32_t line) {
  return line > 0 && line < kMostLines ? line : 0;
}

bool sound_column(std::int32_t column) {
  return column >= 0 && column < kMostLines;
}

}  // namespace

Frame frame_of(const trace::TraceFile& trace, const trace::Position& position) {
  Frame frame;
  frame.file = trace.string(position.file);
  frame.function = trace.string(position.function);
  frame.line = sound_line(position.line);
  frame.end_line = std::max(sound_line(position.end_line), frame.line);
  frame.source = trace.source_line(position.file, position.line);
  join_lines(frame, [&](int line) { return trace.source_line(position.file, line); });
  if (sound_column(position.column) && sound_column(position.end_column)) {
    frame.column = position.column;
    frame.end_column = position.end_column;
  }
  frame.library = trace::is_library_path(frame.file);
  return frame;
}

std::optional<Frame> user_frame_of(const trace::TraceFile& trace, trace::SiteId id) {
  const auto site = trace.site(id);
  if (!site) return std::nullopt;
  Frame frame = frame_of(trace, site->user);
  if (frame.file.empty()) frame = frame_of(trace, site->innermost);
  if (frame.file.empty()) return std::nullopt;
  return frame;
}

std::vector<Frame> call_frames_of(const trace::TraceFile& trace, trace::LineageId call) {
  std::vector<Frame> frames;
  for (const trace::SiteId site : trace.calls_from(call)) {
    if (auto frame = user_frame_of(trace, site)) frames.push_back(std::move(*frame));
  }
  return frames;
}

std::optional<Frame> innermost_frame_of(const trace::TraceFile& trace, trace::SiteId id) {
  const auto site = trace.site(id);
  if (!site) return std::nullopt;
  Frame frame = frame_of(trace, site->innermost);
  if (frame.file.empty()) return std::nullopt;
  return frame;
}

std::vector<Frame> frames_of(const trace::TraceFile& trace, std::span<const trace::FrameRecord> records) {
  std::vector<Frame> frames;
  frames.reserve(records.size());
  for (const trace::FrameRecord& record : records) {
    Frame& frame = frames.emplace_back(frame_of(trace, record.position));
    frame.torch = (record.flags & trace::kTorchFrame) != 0;
    frame.library = (record.flags & (trace::kLibraryFrame | trace::kTorchFrame)) != 0;
  }
  return frames;
}

std::string_view base_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

bool same_line(const Frame& one, const Frame& other) {
  return one.line == other.line && one.file == other.file;
}

std::string short_place(const Frame& frame) {
  return std::string(base_name(frame.file)) + ":" + std::to_string(frame.line);
}

}  // namespace devsan::report
