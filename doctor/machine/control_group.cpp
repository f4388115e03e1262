#include "doctor/machine/control_group.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace devsan::doctor {
namespace {

namespace fs = std::filesystem;

struct Names {
  int version;
  const char* limit;
  const char* used;
  const char* reclaimable;  // in memory.stat
};
constexpr Names kVersion1{1, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Names kVersion2{2, "memory.max", "memory.current", "inactive_file"};

// Version 1 writes a number near 2^63 where there is no limit, version 2 the word "max".
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

std::optional<std::uint64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

std::uint64_t named_number(const fs::path& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  std::uint64_t value = 0;
  while (file >> word >> value) {
    if (word == name) return value;
  }
  return 0;
}

void consider(const fs::path& group, const Names& names, std::optional<GroupMemory>& tightest) {
  const std::optional<std::uint64_t> limit = number_in(group / names.limit);
  if (!limit || *limit >= kNoLimit) return;
  const std::uint64_t used = number_in(group / names.used).value_or(0);
  const std::uint64_t held = used - std::min(used, named_number(group / "memory.stat", names.reclaimable));
  const GroupMemory memory{*limit, *limit > held ? *limit - held : 0, names.version};
  if (!tightest || memory.left < tightest->left) tightest = memory;
}

using GroupVisitor = std::function<void(const fs::path& group, int version)>;

// In a container the path may be the host's, and then only the topmost group is visible.
void visit_with_parents(const fs::path& mount, fs::path group, int version, const GroupVisitor& visit) {
  visit(mount, version);
  for (; !group.empty() && group != group.root_path(); group = group.parent_path()) {
    visit(mount / group.relative_path(), version);
  }
}

}  // namespace

void visit_groups(const fs::path& root, const std::string& controller, const GroupVisitor& visit) {
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:cpu,cpuacct:/path", "0::/path"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path group = line.substr(second + 1);
    if (controllers == ",,") visit_with_parents(mounts, group, 2, visit);
    if (controllers.find("," + controller + ",") != std::string::npos) {
      visit_with_parents(mounts / controller, group, 1, visit);
    }
  }
}

std::optional<GroupMemory> read_group_memory(const fs::path& root) {
  std::optional<GroupMemory> tightest;
  visit_groups(root, "memory", [&](const fs::path& group, int version) {
    consider(group, version == 2 ? kVersion2 : kVersion1, tightest);
  });
  return tightest;
}

}  // namespace devsan::doctor
