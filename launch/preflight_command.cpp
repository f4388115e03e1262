#include "launch/preflight_command.h"

#include <CLI/CLI.hpp>

#include "launch/run.h"

namespace devsan::launch {

namespace {
constexpr int kMostSteps = 1'000'000;
}

void add_preflight_options(CLI::App& command, PreflightRequest& request) {
  command.add_option("--steps", request.steps, "optimizer steps after which its processes are ended (default: 2)")
      ->check(CLI::Range(1, kMostSteps))
      ->option_text("N");
  command.add_option("--gpus", request.gpus, "simulated devices (default: as many as the launcher uses)")
      ->check(CLI::Range(1, kMaxSimulatedDevices))
      ->option_text("N");
  command
      .add_option("--gpu-memory", request.flags.sim_memory,
                  "memory of a real device; less is simulated where this machine has less (default: 80G)")
      ->option_text("SIZE");
  command.add_option("--out", request.flags.out, "directory for the trace files (default: devsan-out/<time>-<pid>)")
      ->option_text("DIR");
  command.add_option("--suppressions", request.flags.suppressions, "file of suppressions: findings that do not count")
      ->option_text("FILE");
  command.add_option("--rules", request.flags.rules, kRulesHelp)->option_text("FILE");
  command.add_flag("--quiet", request.flags.quiet, "write nothing to stderr but the verdict");
  command.footer(
      "The exit status is 0 if nothing was found, 66 for findings, 69 if the command cannot be simulated, and its own "
      "if it failed in another way.");
}

}  // namespace devsan::launch
