// The places of processes in a distributed run: on which machine, and which of several attempts.
#pragma once

#include <vector>

#include "report/model/host_clocks.h"
#include "report/model/run.h"

namespace devsan::report {

// Fills in `node` and `attempt` where the launcher said neither to anyone. A launcher starts the workers of a rank
// again when one fails; children of a worker, which have its rank too, belong to its attempt. Where agents of several
// nodes count restarts differently, `attempt` is made one number for the whole run.
void place_processes(std::vector<Process>& processes, const HostClocks& clocks);

}  // namespace devsan::report
