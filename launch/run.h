// `devsan run`: the user's command with devsan in it and in all its children.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/environment.h"
#include "launch/fail_on.h"
#include "report/model/run.h"

namespace devsan::launch {

inline constexpr int kUsageStatus = 2;           // devsan itself was called wrongly, and has run nothing
inline constexpr int kMaxSimulatedDevices = 64;  // as many as PyTorch's own CUDA code allows
inline constexpr int kFindingStatus = 66;        // of a run that ended with 0 but has findings that --fail-on names

// Of the option --rules.
inline constexpr char kRulesHelp[] = "file of rules: where tensors are expected, and what is not to happen";

struct RunRequest {
  RunFlags flags;
  std::optional<FailOn> fail_on;
  std::vector<std::string> command;
  // Of a rehearsal: what is to be told before the command starts, once the files that devsan was given are right.
  std::function<void()> before;
  // Of a rehearsal, which nothing but simulated devices will do for: what the exit status becomes, given what was
  // found, the command's own status, and why nothing was traced.
  std::function<int(const report::Report&, int status, const std::string& untraced)> judge;
};

// The exit status of `devsan run`: the command's own, unless --fail-on says otherwise.
int run_command(const RunRequest& request);

}  // namespace devsan::launch
