#include "report/findings/runs.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "trace/reader.h"

namespace devsan::report {
namespace {

namespace fs = std::filesystem;

// A run, or a part of one that has a name of its own.
struct Part {
  std::set<std::string> names;
  std::set<std::uint64_t> rendezvous;
  std::vector<fs::path> files;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;

  bool overlaps(const Part& other) const { return start_ns <= other.end_ns && other.start_ns <= end_ns; }

  bool meets(const Part& other) const {
    return overlaps(other) &&
           std::ranges::any_of(rendezvous, [&](std::uint64_t digest) { return other.rendezvous.contains(digest); });
  }

  void take(const Part& other) {
    names.insert(other.names.begin(), other.names.end());
    rendezvous.insert(other.rendezvous.begin(), other.rendezvous.end());
    files.insert(files.end(), other.files.begin(), other.files.end());
    start_ns = std::min(start_ns, other.start_ns);
    end_ns = std::max(end_ns, other.end_ns);
  }
};

std::int64_t modified_ns(const fs::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return 0;
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

// A process that was killed has not said when: then its file was written last.
Part part_of(const fs::path& file, const trace::FileHeader& header) {
  const std::int64_t told = header.end_time_ns;
  Part part{{trace::run_of(header)}, {}, {file}, header.start_time_ns, told > 0 ? told : modified_ns(file)};
  if (header.rendezvous != 0) part.rendezvous.insert(header.rendezvous);
  part.end_ns = std::max(part.end_ns, part.start_ns);
  return part;
}

// In the order of their beginnings each is held against those before it, which it may make one.
std::vector<Part> joined(const std::map<std::string, Part>& by_name) {
  std::vector<Part> parts;
  for (const auto& [name, part] : by_name) parts.push_back(part);
  std::ranges::sort(parts, {}, &Part::start_ns);
  std::vector<Part> runs;
  for (Part& part : parts) {
    const auto apart = std::partition(runs.begin(), runs.end(), [&](const Part& run) { return !run.meets(part); });
    for (auto run = apart; run != runs.end(); ++run) part.take(*run);
    runs.erase(apart, runs.end());
    runs.push_back(std::move(part));
  }
  std::ranges::sort(runs, {}, &Part::start_ns);
  return runs;
}

// Oldest first.
std::vector<Part> runs_of(const std::vector<fs::path>& files) {
  std::map<std::string, Part> by_name;
  std::vector<fs::path> unreadable;
  for (const fs::path& file : files) {
    const auto header = trace::read_header(file);
    if (!header) {
      unreadable.push_back(file);
      continue;
    }
    const Part part = part_of(file, *header);
    const auto [known, is_new] = by_name.emplace(*part.names.begin(), part);
    if (!is_new) known->second.take(part);
  }
  std::vector<Part> runs = joined(by_name);
  if (runs.empty() && !unreadable.empty()) runs.emplace_back();
  for (const fs::path& file : unreadable) {
    const std::int64_t written = modified_ns(file);
    const auto later = std::ranges::find_if(runs, [&](const Part& run) { return run.start_ns > written; });
    (later == runs.begin() ? runs.front() : *std::prev(later)).files.push_back(file);
  }
  return runs;
}

}  // namespace

RunTraces newest_run(const std::vector<fs::path>& files) {
  const std::vector<Part> runs = runs_of(files);
  return runs.empty() ? RunTraces{} : RunTraces{runs.back().files, runs.size() - 1};
}

std::size_t count_runs(const std::vector<fs::path>& files) {
  return runs_of(files).size();
}

std::vector<fs::path> traces_of_run(const std::vector<fs::path>& files, const std::string& name) {
  std::vector<fs::path> found;
  for (const Part& run : runs_of(files)) {
    if (run.names.contains(name)) found = run.files;
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace devsan::report
