// `devsan preflight`: the user's command on simulated devices for a few steps, and a verdict.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/environment.h"

namespace devsan::launch {

struct PreflightRequest {
  RunFlags flags;  // of the run that it makes: out, suppressions, rules, quiet; sim_memory is that of a real device
  int steps = 2;
  std::optional<int> gpus;
  std::vector<std::string> command;
};

// 0: nothing was found; kFindingStatus; kNotSimulatedStatus; kUsageStatus; or the status of a command that failed.
int preflight_command(const PreflightRequest& request);

}  // namespace devsan::launch
