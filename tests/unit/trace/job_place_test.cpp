// Where a process is in its job, by the variables that the launchers of the field set.
#include "trace/job_place.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <string>

#include "sample.h"

namespace devsan::trace::testing {
namespace {

using Variables = std::map<std::string, std::string>;

class Environment {
 public:
  explicit Environment(const Variables& variables) : variables_(variables) {
    for (const auto& [name, value] : variables_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : variables_) unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  Variables variables_;
};

struct Expected {
  int rank, local_rank, world_size, node, attempt;
  bool rank_is_tasks;
};

void check(const Variables& variables, const Expected& expected) {
  const Environment environment(variables);
  const JobPlace place = job_place();
  CHECK(place.rank == expected.rank);
  CHECK(place.local_rank == expected.local_rank);
  CHECK(place.world_size == expected.world_size);
  CHECK(place.node == expected.node);
  CHECK(place.attempt == expected.attempt);
  CHECK(place.rank_is_tasks == expected.rank_is_tasks);
}

const Variables kTorchrun = {{"RANK", "5"},       {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "8"},
                             {"GROUP_RANK", "1"}, {"ROLE_RANK", "5"},  {"TORCHELASTIC_RESTART_COUNT", "2"}};
const Variables kSlurm = {{"SLURM_JOB_ID", "7"},  {"SLURM_STEP_ID", "0"},        {"SLURM_PROCID", "3"},
                          {"SLURM_LOCALID", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NTASKS", "16"},
                          {"SLURM_NODEID", "1"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_NODE_RANK", "0"}};

Variables both(const Variables& first, const Variables& second) {
  Variables all = first;
  all.insert(second.begin(), second.end());
  return all;
}

TEST_CASE("a process of no job has no place in one") {
  check({}, {-1, -1, -1, -1, -1, true});
  check({{"RANK", "two"}, {"LOCAL_RANK", "-1"}, {"WORLD_SIZE", ""}, {"GROUP_RANK", "99999999999"}},
        {-1, -1, -1, -1, -1, true});
}

TEST_CASE("torchrun, DeepSpeed, Lightning and a pod of a PyTorchJob say their ranks in torch's variables") {
  check(kTorchrun, {5, 1, 8, 1, 2, false});
  check({{"RANK", "3"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "4"}, {"CROSS_RANK", "1"}, {"LOCAL_SIZE", "2"}},
        {3, 1, 4, 1, -1, false});
  check({{"LOCAL_RANK", "1"}, {"NODE_RANK", "2"}, {"WORLD_SIZE", "6"}}, {-1, 1, 6, 2, -1, true});
  check({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"PET_NODE_RANK", "1"}}, {1, -1, 2, 1, -1, false});
}

TEST_CASE("a task of Slurm is the rank that its number says, and a batch script is none") {
  check(kSlurm, {3, 1, 4, 1, -1, true});
  check(both(kSlurm, {{"SLURM_RESTART_COUNT", "1"}}), {3, 1, 4, 1, 1, true});
  Variables batch = kSlurm;
  batch.erase("SLURM_STEP_ID");
  check(batch, {-1, -1, -1, -1, -1, true});
}

TEST_CASE("processes of mpirun are the ranks that Open MPI, MVAPICH and Hydra number") {
  check(kOpenMpi, {2, 0, 4, -1, -1, true});
  check({{"MV2_COMM_WORLD_RANK", "1"}, {"MV2_COMM_WORLD_LOCAL_RANK", "1"}, {"MV2_COMM_WORLD_SIZE", "2"}},
        {1, 1, 2, -1, -1, true});
  check({{"PMI_RANK", "1"}, {"MPI_LOCALRANKID", "1"}, {"PMI_SIZE", "2"}}, {1, 1, 2, -1, -1, true});
}

TEST_CASE("the launcher that is nearest to the process counts") {
  check(both(kTorchrun, kSlurm), {5, 1, 8, 1, 2, false});
  check(both(kOpenMpi, kSlurm), {2, 0, 4, -1, -1, true});
  check(both({{"RANK", "3"}}, kSlurm), {3, 1, 4, 1, -1, false});
}

TEST_CASE("variables that a launcher sets after the start count once the group has told the rank") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  const Environment environment({{"RANK", "3"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "4"}, {"NODE_RANK", "1"}});
  recorder->add_rank(3, 4);
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.rank() == 3);
  CHECK(trace.local_rank() == 1);
  CHECK(trace.world_size() == 4);
  CHECK(trace.node() == 1);
}

TEST_CASE("the process group puts the rank of a task right, and RANK stays") {
  const TemporaryDirectory directory;
  for (const bool is_task : {true, false}) {
    const Environment environment(is_task ? kSlurm : both(kTorchrun, kSlurm));
    const auto recorder = open_recorder(directory.path());
    recorder->add_rank(0, 2);  // a group of some of the tasks
    CHECK(read_trace(*recorder).rank() == (is_task ? 3 : 5));
    recorder->add_rank(25, 32);
    const TraceFile trace = read_trace(*recorder);
    CHECK(trace.rank() == (is_task ? 25 : 5));
    CHECK(trace.local_rank() == (is_task ? std::nullopt : std::optional(1)));
    CHECK(trace.world_size() == (is_task ? 32 : 8));
    CHECK(trace.node() == 1);
    CHECK(trace.attempt() == (is_task ? std::nullopt : std::optional(2)));
  }
}

}  // namespace
}  // namespace devsan::trace::testing
