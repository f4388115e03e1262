// Findings about processes that did not end by themselves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/finding.h"
#include "report/model/run.h"
#include "trace/reader.h"

namespace devsan::report {

// How the children of processes ended. What a trace tells of its own process is in the process already.
class ChildEnds {
 public:
  void add(const trace::TraceFile& trace);
  // Fills in the endings that parents were told of.
  void tell(std::vector<Process>& processes) const;

 private:
  struct End {
    std::string host;
    std::uint32_t pid;
    int status;
    std::int64_t time_ns;
  };
  std::vector<End> ends_;
};

// Takes what the header says of the end.
void add_ending(const trace::TraceFile& trace, Process& process);

// To be called when all processes of the run are known.
std::vector<Finding> build_endings(const std::vector<Process>& processes);

// "SIGKILL"; "signal 64" for one without a name.
std::string signal_name(int signal);
int signal_number(std::string_view name);  // 0 for one that is not known

// "rank 3 was ended by SIGSEGV"
std::string ending_text(const Finding& finding);

}  // namespace devsan::report
