#include "launch/capacity.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "doctor/machine/control_group.h"

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kBytesPerCompiler = std::size_t{1536} << 20;

// None where the file is missing, or says "max" or -1.
std::optional<std::size_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  long long value = -1;
  return file >> value && value >= 0 ? std::optional(static_cast<std::size_t>(value)) : std::nullopt;
}

// Of a file of lines "name value".
std::size_t named_number(const fs::path& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  std::string rest;
  while (file >> word) {
    std::size_t value = 0;
    if (word == name && file >> value) return value;
    std::getline(file, rest);
  }
  return 0;
}

std::size_t whole_processors(std::size_t quota, std::size_t period) {
  return period == 0 ? kUnlimited : std::max<std::size_t>((quota + period - 1) / period, 1);
}

std::size_t processors_of_version1(const fs::path& group) {
  const std::optional<std::size_t> quota = number_in(group / "cpu.cfs_quota_us");
  return quota ? whole_processors(*quota, number_in(group / "cpu.cfs_period_us").value_or(0)) : kUnlimited;
}

// "200000 100000", "max 100000"
std::size_t processors_of_version2(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  std::size_t quota = 0;
  std::size_t period = 0;
  return file >> quota >> period ? whole_processors(quota, period) : kUnlimited;
}

void apply_groups(const fs::path& root, Capacity& capacity) {
  if (const auto group = doctor::read_group_memory(root)) {
    capacity.memory = std::min<std::size_t>(capacity.memory, group->left);
  }
  doctor::visit_groups(root, "cpu", [&](const fs::path& group, int version) {
    const std::size_t here = version == 2 ? processors_of_version2(group) : processors_of_version1(group);
    capacity.processors = std::min(capacity.processors, here);
  });
}

std::size_t usable_processors() {
  cpu_set_t processors;
  if (sched_getaffinity(0, sizeof processors, &processors) == 0)
    return static_cast<std::size_t>(CPU_COUNT(&processors));
  // More than fit into the set.
  return static_cast<std::size_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
}

}  // namespace

Capacity read_capacity(const fs::path& root) {
  const std::size_t kilobytes = named_number(root / "proc/meminfo", "MemAvailable:");
  Capacity capacity{kilobytes != 0 ? kilobytes * 1024 : kUnlimited, usable_processors()};
  apply_groups(root, capacity);
  return capacity;
}

std::size_t compilers_within(const Capacity& capacity) {
  return std::clamp<std::size_t>(capacity.memory / kBytesPerCompiler, 1, std::max<std::size_t>(capacity.processors, 1));
}

std::size_t compiler_slots() {
  return compilers_within(read_capacity());
}

}  // namespace devsan::launch
