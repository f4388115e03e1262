// Reads many traces by a few threads, and gives them in their order. Only a few are in memory at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "report/model/finding.h"
#include "report/model/run.h"
#include "trace/reader.h"

namespace devsan::report {

// A trace with what can be made of it alone.
struct ReadTrace {
  trace::TraceFile trace;
  Process process;
  std::vector<Finding> meetings;  // one for each meeting of the trace, in their order
  std::vector<Finding> traffic;
  std::vector<Finding> growth;
};

using ReadResult = std::variant<ReadTrace, trace::Damage>;

ReadResult read_trace(const std::filesystem::path& path);

class TraceReader {
 public:
  // `files` outlives this.
  explicit TraceReader(std::span<const std::filesystem::path> files);
  ~TraceReader();
  TraceReader(const TraceReader&) = delete;
  TraceReader& operator=(const TraceReader&) = delete;

  // The next file's; none behind the last one.
  std::optional<ReadResult> next();

 private:
  class Crew;

  std::span<const std::filesystem::path> files_;
  std::size_t given_ = 0;
  std::unique_ptr<Crew> crew_;  // none where a few files are read by the caller's own thread
};

}  // namespace devsan::report
