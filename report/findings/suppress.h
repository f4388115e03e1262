// Which findings a file of suppressions silences, and which of its entries were of use.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "report/model/finding.h"
#include "report/model/run.h"
#include "trace/reader.h"
#include "trace/suppressions.h"

namespace devsan::report {

struct SuppressionFile {
  std::vector<SuppressionUse> entries;  // unused as yet
  std::vector<std::string> complaints;  // one line each, "FILE:LINE: …"
};

// Never throws; a file that cannot be read is one complaint.
SuppressionFile read_suppression_file(const std::filesystem::path& path);

// Judges the findings of one trace after the other.
class Suppressor {
 public:
  // These, and not those of the traces.
  void use_instead(const std::vector<SuppressionUse>& entries);

  void begin_trace(const trace::TraceFile& trace);

  // For findings that are about the whole run: entries of all traces count.
  void begin_run();

  // Sets `silence` where an entry matches: the first in its file. One that the program has silenced itself stays so.
  void judge(Finding& finding);

  // All entries that any trace brought, in the order of their files and lines.
  std::vector<SuppressionUse> take();

 private:
  struct Entry {
    SuppressionUse use;
    trace::Suppression rule;
  };
  // Processes of one run bring the same entries: each is kept once.
  using Key = std::tuple<std::string, int, std::string>;

  void add(const SuppressionUse& use);

  std::map<Key, Entry> entries_;
  std::vector<Entry*> current_;  // of the trace being judged
  bool instead_ = false;
};

}  // namespace devsan::report
