// Copies traces of several directories into one, where nothing that lies there is touched.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace devsan::report {

struct Gathered {
  std::size_t copied = 0;
  std::size_t already_there = 0;        // with the same bytes
  std::vector<std::string> complaints;  // one line each: what could not be copied, or not be read
};

// Each trace keeps its name, or gets a number behind its pid where another one has that name. A file is checked when
// it is there: what is damaged is copied all the same, and told. Holes stay holes. Files and the directory are made
// for their owner alone.
Gathered gather_traces(const std::vector<std::filesystem::path>& files, const std::filesystem::path& into);

}  // namespace devsan::report
