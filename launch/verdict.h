// What a rehearsal has shown: the last lines of `devsan preflight`, and its exit status.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/model/run.h"

namespace devsan::launch {

inline constexpr int kNotSimulatedStatus = 69;

struct Rehearsal {
  int steps = 0;                    // optimizer steps that were asked for
  int devices = 0;                  // simulated
  std::uint64_t device_memory = 0;  // bytes of each
  std::size_t errors_of_doctor = 0;
  bool memory_is_hosts = false;           // they have less than real ones, since this machine has no more
  std::vector<std::string> remarks = {};  // on what was taken for granted; sentences
};

struct Verdict {
  int status = 0;
  std::vector<std::string> lines;  // the first is the verdict, the others say more
};

// `status`: of the command. `untraced`: why no process was traced, where that is known.
Verdict verdict_on(const report::Report& report, const Rehearsal& rehearsal, int status, const std::string& untraced);

// The same where nothing was run, since the command cannot be rehearsed.
Verdict verdict_without_run(const std::string& why);

}  // namespace devsan::launch
