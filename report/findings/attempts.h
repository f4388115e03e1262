// The places of processes in a distributed run: on which machine, and which of several attempts.
#pragma once

#include <vector>

#include "report/model/finding.h"

namespace devsan::report {

// Fills in `node` and `attempt` where the launcher said neither to anyone. A launcher starts the workers of a rank
// again when one fails; children of a worker, which have its rank too, belong to its attempt.
void place_processes(std::vector<Process>& processes);

}  // namespace devsan::report
