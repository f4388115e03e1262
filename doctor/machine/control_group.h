// The memory that the control groups of this process leave to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace devsan::doctor {

struct GroupMemory {
  std::uint64_t limit = 0;
  std::uint64_t left = 0;  // what was only read from files gives way, and counts as free
  int version = 0;         // of control groups
};

// Of the group, or one above it, that leaves the least; nothing where none has a limit. `root` stands for "/".
std::optional<GroupMemory> read_group_memory(const std::filesystem::path& root);

}  // namespace devsan::doctor
