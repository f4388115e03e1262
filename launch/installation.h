// Where the parts of devsan lie, seen from the running program: PREFIX/bin/devsan, PREFIX/lib/devsan,
// PREFIX/share/devsan. The build folder has the same shape.
#pragma once

#include <filesystem>
#include <string>

namespace devsan::launch {

struct Installation {
  std::filesystem::path program;
  std::filesystem::path library;   // libdevsan.so
  std::filesystem::path sources;   // what `devsan build` compiles
  std::filesystem::path archives;  // and links with: <C++ ABI>/libdevsan_inprocess.a
};

Installation find_installation();

// A name for `library` that LD_PRELOAD can carry. The loader splits the variable at spaces and colons, knows no quotes,
// and expands '$'; a path with one of these in it gets a symbolic link in a directory of the user's own.
std::string preload_name(const std::filesystem::path& library);

bool fits_in_preload(const std::string& path);

}  // namespace devsan::launch
