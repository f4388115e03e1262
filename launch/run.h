// `devsan run`: the user's command with devsan in it and in all its children.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/environment.h"
#include "launch/fail_on.h"

namespace devsan::launch {

inline constexpr int kUsageStatus = 2;     // devsan itself was called wrongly, and has run nothing
inline constexpr int kFindingStatus = 66;  // of a run that ended with 0 but has findings that --fail-on names

struct RunRequest {
  RunFlags flags;
  std::optional<FailOn> fail_on;
  std::vector<std::string> command;
};

// The exit status of `devsan run`: the command's own, unless --fail-on says otherwise.
int run_command(const RunRequest& request);

}  // namespace devsan::launch
