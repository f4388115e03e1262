#include "preload/run_identity.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using devsan::Ancestry;
using devsan::run_identity;

namespace {

using Variables = std::vector<std::pair<const char*, const char*>>;

std::string name_of(const char* given, int root = 0) {
  Ancestry ancestry;
  ancestry.root = root;
  return run_identity(given, ancestry).name.data();
}

// Under these variables.
std::uint64_t rendezvous(const Variables& variables) {
  for (const auto& [name, value] : variables) setenv(name, value, 1);
  const std::uint64_t digest = run_identity("", Ancestry{}).rendezvous;
  for (const auto& [name, value] : variables) unsetenv(name);
  return digest;
}

}  // namespace

TEST_CASE("a run has the name that it is given, or that of the topmost process of its tree") {
  CHECK(name_of("mine", 1) == "mine");
  CHECK_THAT(name_of(""), Catch::Matchers::StartsWith(std::to_string(getpid()) + "-"));
  CHECK_THAT(name_of("", getppid()), Catch::Matchers::StartsWith(std::to_string(getppid()) + "-"));
  CHECK(name_of("", getppid()) == name_of("", getppid()));
  CHECK(name_of(std::string(100, 'x').c_str()) == std::string(63, 'x'));
}

TEST_CASE("a process is of the run that its ancestor's trace names") {
  const std::string directory = std::filesystem::temp_directory_path() / ("devsan-run-" + std::to_string(getpid()));
  devsan::trace::Recorder recorder;
  devsan::trace::RunIdentity run;
  std::string_view("the run").copy(run.name.data(), run.name.size());
  REQUIRE(recorder.open({directory.c_str(), 0, run}) == devsan::trace::OpenResult::opened);
  Ancestry ancestry;
  ancestry.trace.append(recorder.path());
  ancestry.root = getppid();
  CHECK(std::string(run_identity("", ancestry).name.data()) == "the run");
  CHECK(std::string(run_identity("mine", ancestry).name.data()) == "mine");
  std::filesystem::remove_all(directory);
  CHECK_THAT(run_identity("", ancestry).name.data(), Catch::Matchers::StartsWith(std::to_string(getppid()) + "-"));
}

TEST_CASE("what a launcher gives all processes alike is their rendezvous") {
  CHECK(rendezvous({}) == 0);
  CHECK(rendezvous({{"MASTER_ADDR", "node0"}}) == 0);
  const Variables at = {{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}};
  CHECK(rendezvous(at) != 0);
  CHECK(rendezvous(at) == rendezvous(at));
  CHECK(rendezvous(at) != rendezvous({{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29501"}}));
  CHECK(rendezvous({{"TORCHELASTIC_RUN_ID", "a"}}) != rendezvous({{"TORCHELASTIC_RUN_ID", "b"}}));
  // Each attempt of a run has a port of its own.
  CHECK(rendezvous({{"TORCHELASTIC_RUN_ID", "a"}, at[0], at[1]}) == rendezvous({{"TORCHELASTIC_RUN_ID", "a"}}));
  // Not chosen by anybody.
  CHECK(rendezvous({{"TORCHELASTIC_RUN_ID", "none"}}) == 0);
  CHECK(rendezvous({{"TORCHELASTIC_RUN_ID", "none"}, at[0], at[1]}) == rendezvous(at));
  CHECK(rendezvous({{"SLURM_JOB_ID", "5"}, {"SLURM_STEP_ID", "0"}}) != 0);
}
