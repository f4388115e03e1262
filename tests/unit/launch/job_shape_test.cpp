#include "launch/job_shape.h"

#include <catch2/catch.hpp>
#include <map>

#include "temporary_directory.h"

using namespace devsan::launch;

namespace {

using Command = std::vector<std::string>;

JobShape shape(const Command& command, const std::map<std::string, std::string, std::less<>>& variables = {}) {
  return job_shape(command, [&](std::string_view name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST_CASE("a program that no launcher starts says nothing") {
  for (const Command& command : {Command{"python", "train.py", "--nproc-per-node=8"}, Command{"python", "-m", "train"},
                                 Command{"bash", "-c", "torchrun --nproc-per-node=2 train.py"}, Command{}}) {
    CHECK(shape(command).launcher.empty());
    CHECK_FALSE(shape(command).processes);
  }
}

TEST_CASE("torchrun says how many processes a node has, by its options or its variables") {
  CHECK(shape({"torchrun", "--nproc-per-node=4", "train.py"}).processes == 4);
  CHECK(shape({"/venv/bin/torchrun", "--nproc_per_node", "2", "train.py"}).processes == 2);
  CHECK(shape({"timeout", "60", "python", "-m", "torch.distributed.run", "--nproc-per-node=3", "t.py"}).processes == 3);
  CHECK(shape({"torchrun", "train.py", "--nproc-per-node=4"}).processes == 1);
  CHECK(shape({"torchrun", "train.py"}, {{"PET_NPROC_PER_NODE", "8"}}).processes == 8);
  CHECK_FALSE(shape({"torchrun", "--nproc-per-node=gpu", "train.py"}).processes);
}

TEST_CASE("torchrun says how many nodes it waits for") {
  CHECK(shape({"torchrun", "--nnodes=2", "train.py"}).nodes == 2);
  CHECK(shape({"torchrun", "--nnodes=1:4", "train.py"}).nodes == 1);
  CHECK(shape({"torchrun", "train.py"}, {{"PET_NNODES", "3"}}).nodes == 3);
}

TEST_CASE("deepspeed says how many devices it uses, or which") {
  CHECK(shape({"deepspeed", "--num_gpus", "2", "train.py", "--num_gpus", "4"}).processes == 2);
  CHECK(shape({"deepspeed", "--include=localhost:1,3", "train.py"}).processes == 4);
  CHECK(shape({"python", "-m", "deepspeed.launcher.runner", "--num_gpus=2", "train.py"}).processes == 2);
  CHECK(shape({"deepspeed", "--num_nodes=2", "train.py"}).nodes == 2);
  CHECK_FALSE(shape({"deepspeed", "train.py"}).processes);
}

TEST_CASE("accelerate says it by an option, the file that is named, or the user's own") {
  const TemporaryDirectory directory;
  const std::string file =
      directory.write("two.yaml", "distributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 2\n");
  CHECK(shape({"accelerate", "launch", "--config_file", file, "train.py"}).processes == 2);
  CHECK(shape({"accelerate", "launch", "--config_file", file, "--num_processes=4", "train.py"}).processes == 4);
  directory.write("accelerate/default_config.yaml", "num_machines: 2\nnum_processes: 8\n");
  const JobShape own = shape({"accelerate", "launch", "train.py"}, {{"HF_HOME", directory.path().string()}});
  CHECK(own.processes == 4);
  CHECK(own.nodes == 2);
  CHECK_FALSE(shape({"accelerate", "launch", "train.py"}, {{"HF_HOME", "/nowhere"}}).processes);
}

TEST_CASE("mpirun and srun say how many tasks they start") {
  CHECK(shape({"mpirun", "-np", "2", "python", "train.py"}).processes == 2);
  CHECK(shape({"srun", "--ntasks=8", "--ntasks-per-node=4", "python", "train.py"}).processes == 4);
}

TEST_CASE("devices that CUDA_VISIBLE_DEVICES numbers are there") {
  CHECK(devices_for_visible("") == 0);
  CHECK(devices_for_visible("0,1") == 2);
  CHECK(devices_for_visible("5,2") == 6);
  CHECK(devices_for_visible("1,-1,7") == 2);
  CHECK(devices_for_visible("GPU-8a1b") == 0);
}

}  // namespace
