// A folder that a config names, and what of it is there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace devsan::doctor {

struct Folder {
  std::string nearest;  // the folder, or the deepest above it that there is
  bool there = false;   // the folder itself
  bool is_directory = false;
  bool writable = false;   // by this user
  std::string kind;        // "tmpfs", "nfs", …: of file systems that are no disk of this machine; else empty
  std::uint64_t free = 0;  // bytes that this user may still write
};

Folder read_folder(const std::filesystem::path& path);

}  // namespace devsan::doctor
