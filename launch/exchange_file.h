// Hooks as one file, which a machine with a compiler makes for others: a tar archive whose first member says what they
// are for, and has a digest of each library.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace devsan::launch {

struct ExchangeFile {
  std::string key;                                             // as the hooks are called in a cache
  std::string torch;                                           // its version, for people
  std::vector<std::pair<std::string, std::string>> libraries;  // name and content
};

// The libraries in `directory`, into a file that appears when it is whole.
void write_exchange_file(const std::filesystem::path& file, const std::filesystem::path& directory,
                         const std::string& key, const std::string& torch);

// Throws Failure with one sentence where the file is no such archive, or is not as it was written.
ExchangeFile read_exchange_file(const std::filesystem::path& file);

void write_libraries(const ExchangeFile& file, const std::filesystem::path& directory);

}  // namespace devsan::launch
