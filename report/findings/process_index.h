// Processes by host and pid. A pid comes again: several processes may have one.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/model/run.h"

namespace devsan::report {

// Holds neither the processes nor their order: both stay as they are as long as it is used.
class ProcessIndex {
 public:
  explicit ProcessIndex(const std::vector<Process>& processes) {
    for (std::size_t i = 0; i < processes.size(); ++i) by_pid_[key(processes[i].host, processes[i].pid)].push_back(i);
    first_ = processes.data();
  }

  const std::vector<std::size_t>& find(const std::string& host, std::uint32_t pid) const {
    static const std::vector<std::size_t> kNone;
    const auto found = by_pid_.find(key(host, pid));
    return found == by_pid_.end() ? kNone : found->second;
  }

  bool has_parent(const Process& process) const {
    for (const std::size_t index : find(process.host, process.parent_pid)) {
      if (first_ + index != &process) return true;
    }
    return false;
  }

 private:
  static std::string key(const std::string& host, std::uint32_t pid) { return host + ':' + std::to_string(pid); }

  const Process* first_ = nullptr;
  std::unordered_map<std::string, std::vector<std::size_t>> by_pid_;
};

}  // namespace devsan::report
