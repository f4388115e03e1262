// The control groups of this process, and the memory that they leave to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace devsan::doctor {

struct GroupMemory {
  std::uint64_t limit = 0;
  std::uint64_t left = 0;  // what was only read from files gives way, and counts as free
  int version = 0;         // of control groups
};

// Visits the folders of the groups of this process that have the controller ("memory", "cpu"), and of all above them.
// `root` stands for "/".
void visit_groups(const std::filesystem::path& root, const std::string& controller,
                  const std::function<void(const std::filesystem::path& group, int version)>& visit);

// Of the group, or one above it, that leaves the least; nothing where none has a limit. `root` stands for "/".
std::optional<GroupMemory> read_group_memory(const std::filesystem::path& root);

}  // namespace devsan::doctor
