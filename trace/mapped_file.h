// Makes the file of a process: a name that nobody has, room on the disk that is certain, a mapping, no descriptor.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

namespace devsan::trace {

// Why there is a file, or none.
enum class OpenResult { opened, cannot_create_directory, cannot_create_file, no_space, cannot_map };

using PathBuffer = char[PATH_MAX];

// The absolute form of `path`, so that a process that changes its directory stays where it began. Sets errno.
bool make_absolute(const char* path, PathBuffer& absolute) noexcept;

// Like `mkdir -p -m 0700`; fine when it is there already. Sets errno.
bool make_directories(const char* absolute) noexcept;

struct MappedFile {
  OpenResult result = OpenResult::cannot_create_file;
  std::byte* base = nullptr;  // zeroed, `size` bytes, backed by space that is reserved
  int error = 0;              // errno of what failed
};

// Writes the path to `path`. Whatever fails, no half-made file is left.
MappedFile make_mapped_file(const char* directory, std::int32_t rank, std::uint32_t pid, std::size_t size,
                            PathBuffer& path) noexcept;

}  // namespace devsan::trace
