// How much of the machine a build may take.
#pragma once

#include <cstddef>
#include <filesystem>

namespace devsan::launch {

struct Capacity {
  std::size_t memory = 0;      // bytes that can still be had
  std::size_t processors = 1;  // that may be used at once
};

// By the machine, this process's affinity, and the control groups that it is in (version 1 or 2). `root` stands for
// "/".
Capacity read_capacity(const std::filesystem::path& root = "/");

// A compiler that reads torch's headers needs 1.5 GiB.
std::size_t compilers_within(const Capacity& capacity);

// How many compilers can run at once; at least one.
std::size_t compiler_slots();

}  // namespace devsan::launch
