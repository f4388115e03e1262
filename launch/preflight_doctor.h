// What `devsan doctor` says of the configs and packages that a command uses.
#pragma once

#include "doctor/diagnosis.h"
#include "launch/job_shape.h"

namespace devsan::launch {

// Errors and warnings alone, and none about driver, GPUs and limits: the run itself is to have another machine.
doctor::Diagnosis diagnose_command(const std::vector<std::string>& command, const JobShape& shape);

// The file that the command names for DeepSpeed; empty: none that is there.
std::string deepspeed_config_of(const std::vector<std::string>& command);

}  // namespace devsan::launch
