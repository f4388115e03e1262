// Which traces of a directory are of one run.
#include "report/findings/runs.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <memory>
#include <string_view>

#include "trace/recorder.h"
#include "trace_builder.h"

namespace devsan::report {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<trace::Recorder> begin(const fs::path& directory, std::string_view run, std::uint64_t rendezvous = 0) {
  trace::RunIdentity identity{{}, rendezvous};
  run.copy(identity.name.data(), run.size());
  auto recorder = std::make_unique<trace::Recorder>();
  REQUIRE(recorder->open({directory.c_str(), std::size_t{2} << 20, identity}) == trace::OpenResult::opened);
  return recorder;
}

void end(trace::Recorder& recorder) {
  recorder.close(trace::CloseMark::exited);
}

std::vector<fs::path> all_in(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) files.push_back(entry.path());
  return files;
}

TEST_CASE("the newest run is the one that began last, however long another one goes on") {
  const TemporaryDirectory directory;
  const auto long_run = begin(directory.path(), "a");
  const auto first = begin(directory.path(), "b");
  const auto second = begin(directory.path(), "b");
  end(*first);
  end(*second);
  end(*long_run);
  const RunTraces newest = newest_run(all_in(directory.path()));
  CHECK(newest.files.size() == 2);
  CHECK(newest.others == 1);
  CHECK(count_runs(all_in(directory.path())) == 2);
  CHECK(traces_of_run(all_in(directory.path()), "a") == std::vector<fs::path>{long_run->path()});
  CHECK(traces_of_run(all_in(directory.path()), "c").empty());
}

TEST_CASE("trees of processes with one rendezvous are one run while they are there together") {
  const TemporaryDirectory directory;
  const auto node0 = begin(directory.path(), "node 0", 7);
  const auto node1 = begin(directory.path(), "node 1", 7);
  const auto stranger = begin(directory.path(), "stranger", 8);
  end(*stranger);
  end(*node0);
  end(*node1);
  CHECK(count_runs(all_in(directory.path())) == 2);
  CHECK(traces_of_run(all_in(directory.path()), "node 0").size() == 2);
  const auto again = begin(directory.path(), "node 0, later", 7);
  end(*again);
  const RunTraces newest = newest_run(all_in(directory.path()));
  CHECK(newest.files == std::vector<fs::path>{again->path()});
  CHECK(newest.others == 2);
}

TEST_CASE("traces that name no run are one, and a file that is no trace is of the run before it") {
  const TemporaryDirectory directory;
  const auto first = begin(directory.path(), "");
  const auto second = begin(directory.path(), "");
  std::ofstream(directory.path() / "rank-.1.devsan") << "Dear reader,\n";
  CHECK(newest_run(all_in(directory.path())).files.size() == 3);
  const auto named = begin(directory.path(), "a");
  fs::last_write_time(directory.path() / "rank-.1.devsan", fs::file_time_type::clock::now() - std::chrono::hours(1));
  const RunTraces newest = newest_run(all_in(directory.path()));
  CHECK(newest.files == std::vector<fs::path>{named->path()});
  CHECK(newest.others == 1);
}

TEST_CASE("a directory without traces has no run") {
  CHECK(newest_run({}).files.empty());
  CHECK(count_runs({}) == 0);
}

}  // namespace
}  // namespace devsan::report
