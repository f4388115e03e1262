// What `devsan doctor` says of the configs and packages that a command uses.
#pragma once

#include "doctor/diagnosis.h"
#include "launch/job_shape.h"

namespace devsan::launch {

// Errors and warnings alone, and none about driver, GPUs and limits: the real run will be on another machine.
doctor::Diagnosis diagnose_command(const std::vector<std::string>& command, const JobShape& shape);

}  // namespace devsan::launch
