#include "trace/job_place.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace devsan::trace {
namespace {

using Names = std::initializer_list<const char*>;

std::int32_t number_of(const char* name) noexcept {
  const char* const text = std::getenv(name);
  if (text == nullptr) return -1;
  const char* const end = text + std::strlen(text);
  std::int32_t number = -1;
  const auto [stop, error] = std::from_chars(text, end, number);
  return error == std::errc() && stop == end && number >= 0 ? number : -1;
}

// Of the first of these variables that holds one.
std::int32_t first_of(Names names) noexcept {
  for (const char* name : names) {
    const std::int32_t number = number_of(name);
    if (number >= 0) return number;
  }
  return -1;
}

// A batch script has the variables of a task too, but only a step has a number. mpirun starts one helper a node by
// srun, and what the helper starts inherits its variables.
bool is_task_of_slurm() noexcept {
  return number_of("SLURM_STEP_ID") >= 0 &&
         first_of({"OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "MPI_LOCALRANKID"}) < 0;
}

void complete(std::int32_t& number, Names names) noexcept {
  if (number < 0) number = first_of(names);
}

}  // namespace

JobPlace job_place() noexcept {
  JobPlace place;
  place.rank = number_of("RANK");
  place.local_rank = number_of("LOCAL_RANK");
  place.world_size = number_of("WORLD_SIZE");
  // torchrun; Lightning and Ray Train; DeepSpeed; operators of Kubernetes, for pods in which no launcher runs
  place.node = first_of({"GROUP_RANK", "NODE_RANK", "CROSS_RANK", "PET_NODE_RANK", "JOB_COMPLETION_INDEX"});
  place.attempt = number_of("TORCHELASTIC_RESTART_COUNT");
  place.rank_is_tasks = place.rank < 0;
  // Open MPI, MVAPICH, and Hydra, which starts MPICH's and Intel's. OMPI_COMM_WORLD_NODE_RANK is no node's number.
  complete(place.rank, {"OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK"});
  complete(place.local_rank, {"OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"});
  complete(place.world_size, {"OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE"});
  if (is_task_of_slurm()) {
    complete(place.rank, {"SLURM_PROCID"});
    complete(place.local_rank, {"SLURM_LOCALID"});
    complete(place.world_size, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
    complete(place.node, {"SLURM_NODEID"});
    complete(place.attempt, {"SLURM_RESTART_COUNT"});
  }
  return place;
}

}  // namespace devsan::trace
