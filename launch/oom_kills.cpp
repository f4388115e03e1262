#include "launch/oom_kills.h"

#include <fstream>
#include <string>
#include <string_view>

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

// The value of `name` in a file of lines "name value".
std::optional<std::uint64_t> value_in(const fs::path& file, std::string_view name) {
  std::ifstream lines(file);
  std::string key;
  std::uint64_t value = 0;
  while (lines >> key >> value) {
    if (key == name) return value;
  }
  return std::nullopt;
}

}  // namespace

// Each line is "number:controllers:path"; version 2 of control groups has number 0 and no controllers.
std::optional<std::uint64_t> oom_kills(const fs::path& root) {
  std::ifstream groups(root / "proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path group = fs::path(line.substr(second + 1)).relative_path();
    std::optional<std::uint64_t> found;
    if (controllers == ",,") found = value_in(root / "sys/fs/cgroup" / group / "memory.events", "oom_kill");
    if (controllers.find(",memory,") != std::string::npos) {
      found = value_in(root / "sys/fs/cgroup/memory" / group / "memory.oom_control", "oom_kill");
    }
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace devsan::launch
