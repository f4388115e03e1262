#include "report/findings/attempts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>

#include "report/findings/process_index.h"
#include "report/findings/restarts.h"

namespace devsan::report {
namespace {

// The process of the same rank that this one descends from, itself where there is none.
std::size_t worker_of(const std::vector<Process>& processes, const ProcessIndex& by_pid, std::size_t index) {
  for (std::size_t depth = 0; depth < processes.size(); ++depth) {
    const Process& process = processes[index];
    std::optional<std::size_t> parent;
    for (const std::size_t one : by_pid.find(process.host, process.parent_pid)) {
      const bool fits = processes[one].rank == process.rank && processes[one].start_ns <= process.start_ns;
      if (fits && (!parent || processes[one].start_ns > processes[*parent].start_ns)) parent = one;
    }
    if (!parent || *parent == index) return index;
    index = *parent;
  }
  return index;
}

void place_on_nodes(std::vector<Process>& processes) {
  if (std::ranges::any_of(processes, [](const Process& process) { return process.node.has_value(); })) return;
  std::map<std::string, int> lowest;
  for (const Process& process : processes) {
    if (!process.rank || process.host.empty()) continue;
    const auto [known, is_new] = lowest.emplace(process.host, *process.rank);
    if (!is_new) known->second = std::min(known->second, *process.rank);
  }
  if (lowest.size() < 2) return;
  std::vector<std::pair<int, std::string>> order;
  for (const auto& [host, rank] : lowest) order.emplace_back(rank, host);
  std::ranges::sort(order);
  std::unordered_map<std::string, int> nodes;
  for (const auto& [rank, host] : order) nodes.emplace(host, static_cast<int>(nodes.size()));
  for (Process& process : processes) {
    if (process.rank && !process.host.empty()) process.node = nodes.at(process.host);
  }
}

// Workers of one rank and command, the earliest first: one that began when another had not ended is no attempt of its
// own. What the launcher told them counts more.
void number_attempts(std::vector<Process>& processes, const std::vector<std::size_t>& workers) {
  const bool told = std::ranges::any_of(workers, [&](std::size_t i) { return processes[i].attempt.has_value(); });
  if (told || workers.size() < 2) return;
  std::vector<int> numbers;
  std::int64_t until_ns = 0;
  for (const std::size_t index : workers) {
    const Process& process = processes[index];
    const int before = numbers.empty() ? -1 : numbers.back();
    numbers.push_back(before < 0 || process.start_ns >= until_ns ? before + 1 : before);
    const bool runs = !process.ended.value_or(true);
    until_ns = std::max(until_ns, runs ? std::numeric_limits<std::int64_t>::max() : process.ended_ns);
  }
  if (numbers.back() == 0) return;
  for (std::size_t i = 0; i < workers.size(); ++i) processes[workers[i]].attempt = numbers[i];
}

}  // namespace

void place_processes(std::vector<Process>& processes, const HostClocks& clocks) {
  place_on_nodes(processes);
  const ProcessIndex by_pid(processes);
  std::map<std::pair<int, std::string>, std::vector<std::size_t>> workers;
  std::vector<std::size_t> worker(processes.size());
  for (std::size_t i = 0; i < processes.size(); ++i) {
    worker[i] = processes[i].rank ? worker_of(processes, by_pid, i) : i;
    if (processes[i].rank && worker[i] == i) workers[{*processes[i].rank, processes[i].command}].push_back(i);
  }
  Restarts restarts;
  for (auto& [which, indexes] : workers) {
    const auto start = [&](std::size_t i) { return clocks.common(processes[i].start_ns, processes[i].host); };
    std::ranges::stable_sort(indexes, {}, start);
    number_attempts(processes, indexes);
    restarts.add(processes, indexes, clocks);
  }
  const bool anew = restarts.are_counted_differently();
  if (anew) restarts.number(processes, worker, clocks);
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (anew || !processes[i].attempt) processes[i].attempt = processes[worker[i]].attempt;
  }
}

}  // namespace devsan::report
