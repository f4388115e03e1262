// Where a process is in its job, as the variables of its launcher say.
#pragma once

#include <cstdint>

namespace devsan::trace {

// -1: not said.
struct JobPlace {
  std::int32_t rank = -1;
  std::int32_t local_rank = -1;
  std::int32_t world_size = -1;
  std::int32_t node = -1;     // number of the node in the job
  std::int32_t attempt = -1;  // how often the launcher had started the processes anew
  // RANK is what torch itself goes by. The number of a task of MPI or Slurm is only where a rank usually comes from: a
  // task may start several ranks.
  bool rank_is_tasks = false;
};

JobPlace job_place() noexcept;

}  // namespace devsan::trace
