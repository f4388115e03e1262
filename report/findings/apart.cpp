#include "report/findings/apart.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "report/findings/collective_stories.h"
#include "report/findings/lines_of_trace.h"
#include "report/findings/rank_records.h"
#include "report/model/frames.h"
#include "report/model/operands.h"
#include "report/text/words.h"

namespace devsan::report {
namespace {

constexpr std::size_t kReadAgain = 3;
constexpr std::size_t kMostDifferences = 6;
constexpr std::size_t kMostRecorded = 3;  // of these: tensors, settings and variables by name
constexpr std::size_t kMostEnds = 4;
// Beyond so many findings, only other ranks are told: each comparison reads traces.
constexpr std::size_t kMostCompared = 64;

// One process for each rank: the one that got furthest.
using Workers = std::map<int, const Process*>;

Workers workers_of(const std::vector<Process>& processes) {
  Workers workers;
  for (const Process& process : processes) {
    if (!process.rank || process.operators == 0) continue;
    const auto [known, is_new] = workers.emplace(*process.rank, &process);
    if (!is_new && process.steps > known->second->steps) known->second = &process;
  }
  return workers;
}

std::vector<const Process*> workers_among(const Workers& workers, const std::vector<int>& ranks) {
  std::vector<const Process*> chosen;
  for (const int rank : ranks) {
    if (const auto worker = workers.find(rank); worker != workers.end()) chosen.push_back(worker->second);
  }
  return chosen;
}

class Comparer {
 public:
  Comparer(Finding& finding, const Workers& workers, const CollectiveLogs& logs)
      : finding_(finding), logs_(logs), here_(workers_among(workers, finding.ranks)) {
    there_ = workers_among(workers, finding.other_ranks);
    went_on_ = there_.size();
    for (const EndedRanks& ended : finding.ended_ranks) {
      const std::vector<const Process*> more = workers_among(workers, ended.ranks);
      there_.insert(there_.end(), more.begin(), more.end());
    }
  }

  void compare() {
    if (here_.empty() || there_.empty()) return;
    const std::vector<const LineageStep*> steps = steps_with_lines();
    std::vector<RankRecords> here;
    std::vector<RankRecords> there;
    std::vector<LinesOfTrace> others;
    read_nearest(here_, [&](const trace::TraceFile& trace) { here.push_back(records_of(trace, finding_, true)); });
    read_nearest(there_, [&](const trace::TraceFile& trace) {
      there.push_back(records_of(trace, finding_, false));
      if (!steps.empty()) others.emplace_back(trace, steps);
    });
    if (!others.empty()) compare_histories(others);
    compare_records(here, there);
    compare_groups();
    compare_placement();
    compare_settings();
  }

 private:
  void add(std::string what, std::string here, std::string there) {
    if (finding_.differs.size() < kMostDifferences) {
      finding_.differs.push_back({std::move(what), std::move(here), std::move(there)});
    }
  }

  // The ranks next to those that had it are the likeliest to be like them in all else.
  std::vector<const Process*> nearest(std::vector<const Process*> processes) const {
    const int own = finding_.rank.value_or(0);
    std::ranges::stable_sort(processes, {}, [&](const Process* process) { return std::abs(*process->rank - own); });
    if (processes.size() > kReadAgain) processes.resize(kReadAgain);
    return processes;
  }

  // The traces of the nearest of them, one after the other.
  void read_nearest(const std::vector<const Process*>& processes,
                    const std::function<void(const trace::TraceFile&)>& read) const {
    for (const Process* process : nearest(processes)) {
      const auto opened = trace::TraceFile::open(process->file);
      if (const auto* trace = std::get_if<trace::TraceFile>(&opened)) read(*trace);
    }
  }

  std::vector<const LineageStep*> steps_with_lines() const {
    std::vector<const LineageStep*> steps;
    for (const Operand& operand : finding_.operands) {
      for (const LineageStep& step : operand.lineage) {
        if (!step.at.file.empty()) steps.push_back(&step);
      }
    }
    return steps;
  }

  void compare_histories(const std::vector<LinesOfTrace>& others) {
    for (const Operand& operand : finding_.operands) {
      // From its origin on, up to the first difference: what comes later follows from it.
      for (auto step = operand.lineage.rbegin(); step != operand.lineage.rend(); ++step) {
        if (!step->at.file.empty() && compare_step(operand, *step, others)) break;
      }
    }
  }

  void compare_records(const std::vector<RankRecords>& here, const std::vector<RankRecords>& there) {
    for (Difference& one : differences_between(here, there, finding_, kMostRecorded)) {
      add(std::move(one.what), std::move(one.here), std::move(one.there));
    }
  }

  // The smallest group that all of them are in and none of the others is.
  void compare_groups() {
    const GroupKey* smallest = nullptr;
    for (const GroupKey& group : logs_.groups()) {
      const auto member = [&](const Process* process) {
        const auto log = logs_.ranks().find(*process->rank);
        return log != logs_.ranks().end() && is_member(group, log->second);
      };
      if (!std::ranges::all_of(here_, member) || std::ranges::any_of(there_, member)) continue;
      if (smallest == nullptr || group.ranks.size() < smallest->ranks.size()) smallest = &group;
    }
    if (smallest == nullptr) return;
    std::vector<int> ranks = smallest->ranks;
    std::ranges::sort(ranks);
    add("process group `" + smallest->name + "`" + (ranks.empty() ? "" : " of ranks " + ranges_of(ranks)), "a member",
        "no member");
  }

  // True where other ranks have another device there, or never came there.
  bool compare_step(const Operand& operand, const LineageStep& step, const std::vector<LinesOfTrace>& others) {
    const std::string line = short_place(step.at);
    if (std::ranges::none_of(others, [&](const LinesOfTrace& other) { return other.ran(step.at); })) {
      // Who ended in that step may not have come to the line.
      if (went_on_ == 0) return false;
      add("`" + spoken_name(operand) + "`, " + std::string(name_of(step.how)) + " at " + line, "this line ran",
          "it did not run");
      return true;
    }
    std::set<std::string> devices;
    for (const LinesOfTrace& other : others) devices.merge(other.devices(step.at, step.op));
    const std::string_view own = kind_of_device(step.device);
    const bool differs = !devices.empty() && std::ranges::none_of(devices, [&](const std::string& device) {
      return kind_of_device(device) == own;
    });
    if (differs) {
      add("device of `" + spoken_name(operand) + "`, " + std::string(name_of(step.how)) + " at " + line, step.device,
          listed_words(devices));
    }
    return differs;
  }

  // A property that all ranks with the finding share, and none of the others has.
  void compare_property(const std::string& what, const std::function<std::string(const Process&)>& property) {
    const auto values = [&](const std::vector<const Process*>& processes) {
      std::set<std::string> found;
      for (const Process* process : processes) found.insert(property(*process));
      return found;
    };
    const std::set<std::string> here = values(here_);
    const std::set<std::string> there = values(there_);
    if (here.size() != 1 || here.contains("") || there.contains(*here.begin())) return;
    constexpr std::size_t kNamed = 4;
    add(what, *here.begin(), there.size() <= kNamed ? listed_words(there) : std::to_string(there.size()) + " others");
  }

  void compare_placement() {
    compare_property("node", [](const Process& process) {
      return process.node ? std::to_string(*process.node) + " (" + process.host + ")" : "";
    });
    // With one node the local rank is the rank.
    const bool several_nodes = std::ranges::any_of(there_, [&](const Process* p) { return p->node != here_[0]->node; });
    if (!several_nodes) return;
    compare_property("local rank", [](const Process& process) {
      return process.local_rank ? std::to_string(*process.local_rank) : "";
    });
  }

  void compare_settings() {
    compare_property("command", [](const Process& process) { return process.command; });
    for (const char* key : {"torch", "python", "cuda", "devsan", "executable"}) {
      compare_property(key, [key](const Process& process) {
        const auto found = process.info.find(key);
        return found == process.info.end() ? std::string() : found->second;
      });
    }
  }

  Finding& finding_;
  const CollectiveLogs& logs_;
  std::vector<const Process*> here_;
  std::vector<const Process*> there_;
  std::size_t went_on_ = 0;  // of these
};

// What is known of how ranks ended.
class RankEnds {
 public:
  RankEnds(const CollectiveLogs& logs, const std::map<int, RankTrouble>& troubles)
      : logs_(logs), troubles_(troubles), first_(first_trouble(troubles)) {}

  // Nothing where it went on beyond the step.
  std::optional<std::string> in_step(const Process& process, std::uint32_t step) const {
    const auto trouble = troubles_.find(*process.rank);
    if (trouble == troubles_.end() || trouble->second.step != step) return std::nullopt;
    const RankLog& log = logs_.ranks().at(*process.rank);
    if (!log.is_of(process)) return std::nullopt;
    std::string what = trouble->second.what;
    if (trouble->second.from_outside && first_ != nullptr && first_->first != *process.rank) {
      what += " after rank " + std::to_string(first_->first) + " had failed";
    }
    return what;
  }

 private:
  const CollectiveLogs& logs_;
  const std::map<int, RankTrouble>& troubles_;
  const std::pair<const int, RankTrouble>* const first_;
};

void add_ended(Finding& finding, int rank, const std::string& what) {
  const auto same = std::ranges::find(finding.ended_ranks, what, &EndedRanks::what);
  if (same != finding.ended_ranks.end()) {
    same->ranks.push_back(rank);
  } else if (finding.ended_ranks.size() < kMostEnds) {
    finding.ended_ranks.push_back({{rank}, what});
  } else {
    finding.ended_ranks.back().what = "ended in other ways";
    finding.ended_ranks.back().ranks.push_back(rank);
  }
}

void find_other_ranks(Finding& finding, const Workers& workers, const RankEnds& ends) {
  // A hang is one of all ranks: its own story says where each was.
  if (finding.ranks.empty() || finding.collective) return;
  for (const auto& [rank, process] : workers) {
    const bool had_it = std::ranges::binary_search(finding.ranks, rank);
    if (had_it || process->steps <= finding.step) continue;
    if (const auto end = ends.in_step(*process, finding.step)) {
      add_ended(finding, rank, *end);
    } else {
      finding.other_ranks.push_back(rank);
    }
  }
}

}  // namespace

void set_apart(Report& report, const CollectiveLogs& logs, const std::map<int, RankTrouble>& troubles) {
  const Workers workers = workers_of(report.run.processes);
  if (workers.size() < 2) return;
  const RankEnds ends(logs, troubles);
  std::size_t compared = 0;
  for (std::vector<Finding>* findings : {&report.findings, &report.suppressed}) {
    for (Finding& finding : *findings) {
      find_other_ranks(finding, workers, ends);
      if (finding.other_ranks.empty() && finding.ended_ranks.empty()) continue;
      if (++compared <= kMostCompared) Comparer(finding, workers, logs).compare();
    }
  }
}

}  // namespace devsan::report
