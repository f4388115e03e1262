#include "report/findings/apart.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "report/findings/lines_of_trace.h"
#include "report/model/frames.h"
#include "report/model/operands.h"
#include "report/text/words.h"

namespace devsan::report {
namespace {

constexpr std::size_t kReadAgain = 3;
constexpr std::size_t kMostDifferences = 6;
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

// "cuda" of "cuda:3": every rank has a device of its own.
std::string kind_of_device(const std::string& device) {
  return device.substr(0, device.find(':'));
}

std::string listed(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

class Comparer {
 public:
  Comparer(Finding& finding, const Workers& workers) : finding_(finding) {
    for (const int rank : finding.ranks) {
      if (const auto worker = workers.find(rank); worker != workers.end()) here_.push_back(worker->second);
    }
    for (const int rank : finding.other_ranks) there_.push_back(workers.at(rank));
  }

  void compare() {
    compare_histories();
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
  std::vector<const Process*> nearest() const {
    std::vector<const Process*> chosen = there_;
    const int own = finding_.rank.value_or(0);
    std::ranges::stable_sort(chosen, {}, [&](const Process* process) { return std::abs(*process->rank - own); });
    if (chosen.size() > kReadAgain) chosen.resize(kReadAgain);
    return chosen;
  }

  void compare_histories() {
    std::vector<const LineageStep*> steps;
    for (const Operand& operand : finding_.operands) {
      for (const LineageStep& step : operand.lineage) {
        if (!step.at.file.empty()) steps.push_back(&step);
      }
    }
    if (steps.empty()) return;
    std::vector<LinesOfTrace> others;
    for (const Process* process : nearest()) {
      const auto opened = trace::TraceFile::open(process->file);
      if (const auto* trace = std::get_if<trace::TraceFile>(&opened)) others.emplace_back(*trace, steps);
    }
    if (others.empty()) return;
    for (const Operand& operand : finding_.operands) {
      // From its origin on, up to the first difference: what comes later follows from it.
      for (auto step = operand.lineage.rbegin(); step != operand.lineage.rend(); ++step) {
        if (!step->at.file.empty() && compare_step(operand, *step, others)) break;
      }
    }
  }

  // True where other ranks have another device there, or never came there.
  bool compare_step(const Operand& operand, const LineageStep& step, const std::vector<LinesOfTrace>& others) {
    const std::string line = short_place(step.at);
    if (std::ranges::none_of(others, [&](const LinesOfTrace& other) { return other.ran(step.at); })) {
      add("`" + spoken_name(operand) + "`, " + std::string(name_of(step.how)) + " at " + line, "this line ran",
          "it did not run");
      return true;
    }
    std::set<std::string> devices;
    for (const LinesOfTrace& other : others) devices.merge(other.devices(step.at, step.op));
    const std::string own = kind_of_device(step.device);
    const bool differs = !devices.empty() && std::ranges::none_of(devices, [&](const std::string& device) {
      return kind_of_device(device) == own;
    });
    if (differs) {
      add("device of `" + spoken_name(operand) + "`, " + std::string(name_of(step.how)) + " at " + line, step.device,
          listed(devices));
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
    add(what, *here.begin(), there.size() <= kNamed ? listed(there) : std::to_string(there.size()) + " others");
  }

  void compare_placement() {
    if (here_.empty()) return;
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
  std::vector<const Process*> here_;
  std::vector<const Process*> there_;
};

void find_other_ranks(Finding& finding, const Workers& workers) {
  // A hang is one of all ranks: its own story says where each was.
  if (finding.ranks.empty() || finding.kind == Kind::collective_hang) return;
  for (const auto& [rank, process] : workers) {
    const bool had_it = std::ranges::binary_search(finding.ranks, rank);
    if (!had_it && process->steps > finding.step) finding.other_ranks.push_back(rank);
  }
}

}  // namespace

void set_apart(Report& report) {
  const Workers workers = workers_of(report.run.processes);
  if (workers.size() < 2) return;
  std::size_t compared = 0;
  for (std::vector<Finding>* findings : {&report.findings, &report.suppressed}) {
    for (Finding& finding : *findings) {
      find_other_ranks(finding, workers);
      if (finding.other_ranks.empty() || ++compared > kMostCompared) continue;
      Comparer(finding, workers).compare();
    }
  }
}

}  // namespace devsan::report
