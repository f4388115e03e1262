// Gathers the traces of a run into one report. A trace is needed only while it is added, so that of a run of thousands
// of ranks a few files are in memory at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "report/findings/build_endings.h"
#include "report/findings/build_placements.h"
#include "report/findings/collective_logs.h"
#include "report/findings/suppress.h"
#include "report/findings/trace_reader.h"
#include "report/model/facts.h"
#include "report/model/finding.h"
#include "report/model/merge.h"
#include "report/model/run.h"
#include "rules/rules_file.h"
#include "trace/reader.h"

namespace devsan::report {

class Collector {
 public:
  // With `instead`, entries of suppressions that count in place of those that the traces bring along.
  // With `facts`, which outlives this, what the processes recorded around their findings is gathered there.
  explicit Collector(const std::vector<SuppressionUse>* instead = nullptr, FactsOfRun* facts = nullptr);
  void add(ReadTrace read);
  // With this many traces, details of processes that ended by themselves are left out.
  void expect(std::size_t traces) { brief_ = traces > kTracesInFull; }
  void add_damage(const std::filesystem::path& file, const trace::Damage& damage);
  std::size_t traces() const { return report_.run.processes.size(); }
  Report take();
  // Rules that count in place of those that the traces bring along.
  void use_rules(const rules::RulesFile& rules);
  // The files' texts that the traces brought along.
  Sources take_sources() { return std::move(sources_); }

 private:
  static constexpr std::size_t kTracesInFull = 1000;

  void take(std::vector<Finding> findings, Process* process);
  void add_notices(const trace::TraceFile& trace, const Process& process);

  Report report_;
  bool brief_ = false;
  FindingMerger merger_;
  FindingMerger suppressed_;
  Suppressor suppressor_;
  RuleBook rules_;
  ChildEnds child_ends_;
  CollectiveLogs collectives_;
  RankLists rank_lists_;
  FactsOfRun* facts_;
  Sources sources_;
};

struct Reading {
  Report report;
  Sources sources;
  std::size_t readable = 0;             // traces of which at least something could be used
  std::vector<std::string> complaints;  // one line each: paths that are not there, directories without traces
};

enum class RunsRead { newest, all };

// What else is done with the traces on the way.
struct ReadingAids {
  const rules::RulesFile* rules = nullptr;                       // that count in place of those of the traces
  std::function<void(const trace::TraceFile&)> visit = nullptr;  // is shown each of them
};

struct TraceListing {
  std::vector<std::filesystem::path> files;
  std::size_t other_runs = 0;
  std::vector<std::string> complaints;  // as in a Reading
};

// What read_traces would read.
TraceListing list_traces(std::span<const std::filesystem::path> paths, RunsRead runs);

// Reads files, and directories for the `*.devsan` files in them, or in their directories where they have none of their
// own: of each directory named those of its newest run, or all.
Reading read_traces(std::span<const std::filesystem::path> paths, const std::vector<SuppressionUse>* instead = nullptr,
                    RunsRead runs = RunsRead::newest, FactsOfRun* facts = nullptr, const ReadingAids& aids = {});

}  // namespace devsan::report
