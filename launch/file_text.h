// The text of a small file.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace devsan::launch {

// Empty where there is none, or it cannot be read.
inline std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

}  // namespace devsan::launch
