// What the kernel says of processes that it has killed for memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace devsan::launch {

// How many processes of this process's control group, and of those below it, the kernel has killed for memory so far;
// nothing where that is not counted. `root` is where the file systems of the kernel are.
std::optional<std::uint64_t> oom_kills(const std::filesystem::path& root = "/");

}  // namespace devsan::launch
