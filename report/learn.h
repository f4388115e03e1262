// Rules that a run has kept.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "report/model/placements.h"
#include "report/model/run.h"
#include "trace/reader.h"

namespace devsan::report {

// Gathers what the processes of a run show, and writes it down as a file of rules: short ones, of patterns.
class Learner {
 public:
  void add(const trace::TraceFile& trace);
  // `report` is that of the same traces: what waits and copies there were.
  std::string rules(const Report& report) const;
  bool saw_placements() const { return !processes_.empty(); }

 private:
  struct Process {
    int rank;
    int local_rank;
    std::vector<std::string> sentences;
    bool by_local_rank;  // what is on a GPU is on that of the process's number
  };
  using Ranks = std::set<int>;  // -1: without a rank
  struct Learned {
    std::string sentence;
    Ranks ranks;  // all of whose processes say it
  };

  std::vector<Learned> learned() const;

  std::vector<Process> processes_;
  std::uint32_t optimizer_steps_ = 0;
};

}  // namespace devsan::report
