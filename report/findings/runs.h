// Which traces belong to one run: a directory may hold those of several.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace devsan::report {

struct RunTraces {
  std::vector<std::filesystem::path> files;
  std::size_t others = 0;  // runs that were left out
};

// The traces of the run that began last. Trees of processes make one run when their launcher gave them the same
// rendezvous, and they were there at the same time. Traces that name no run count as one run; files that are no trace
// are of the run that began last before they were written.
RunTraces newest_run(const std::vector<std::filesystem::path>& files);

// How many runs they are of.
std::size_t count_runs(const std::vector<std::filesystem::path>& files);

// Those of the run with that name.
std::vector<std::filesystem::path> traces_of_run(const std::vector<std::filesystem::path>& files,
                                                 const std::string& name);

}  // namespace devsan::report
