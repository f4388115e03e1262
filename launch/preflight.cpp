#include "launch/preflight.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>

#include "launch/capacity.h"
#include "launch/doctor_terminal.h"
#include "launch/job_shape.h"
#include "launch/messages.h"
#include "launch/preflight_doctor.h"
#include "launch/run.h"
#include "launch/verdict.h"
#include "report/text/style.h"
#include "report/text/words.h"

namespace devsan::launch {
namespace {

constexpr std::string_view kMemoryOfRealDevice = "80G";
constexpr std::uint64_t kLeastDeviceMemory = std::uint64_t{64} << 20;

Variables inherited_variables() {
  return [environment = Environment::inherited()](std::string_view name) { return environment.get(name); };
}

void tell(const Verdict& verdict) {
  const report::Style style = report::style_for(STDERR_FILENO);
  const report::Paint paint = verdict.status == 0 ? report::Paint::good : report::Paint::error;
  std::cerr << "devsan: preflight: " << report::painted(style, paint, verdict.lines.front()) << '\n';
  for (std::size_t i = 1; i < verdict.lines.size(); ++i) std::cerr << "  " << verdict.lines[i] << '\n';
  std::cerr << std::flush;
}

int count_devices(const PreflightRequest& request, const JobShape& shape, const Variables& variables,
                  std::vector<std::string>& remarks) {
  if (request.gpus) return *request.gpus;
  if (!shape.processes) {
    remarks.emplace_back("one device, since the command does not say how many it uses; --gpus N simulates more");
  }
  const int visible = devices_for_visible(variables("CUDA_VISIBLE_DEVICES").value_or(""));
  return std::clamp(std::max(shape.processes.value_or(1), visible), 1, kMaxSimulatedDevices);
}

// Memory of simulated devices is the host's. A tenth of it stays for the processes themselves.
void set_device_memory(const PreflightRequest& request, Rehearsal& rehearsal) {
  const std::uint64_t wanted = trace::parse_size(request.flags.sim_memory.value_or(std::string(kMemoryOfRealDevice)));
  const std::uint64_t spare = read_capacity().memory / 10 * 9;
  const std::uint64_t share = std::max(spare / static_cast<std::uint64_t>(rehearsal.devices), kLeastDeviceMemory);
  rehearsal.memory_is_hosts = share < wanted;
  rehearsal.device_memory = std::min(share, wanted);
}

// Memory of simulated devices is the host's, and a model may need more than there is. The kernel then ends the
// rehearsal rather than anything else that runs here.
void be_killed_first() {
  std::ofstream("/proc/self/oom_score_adj") << 1000;  // inherited by the command
}

// Prints what is wrong; how many errors that are.
std::size_t consult_doctor(const PreflightRequest& request, const JobShape& shape) {
  const doctor::Diagnosis diagnosis = diagnose_command(request.command, shape);
  if (!request.flags.quiet && !diagnosis.lines().empty()) {
    std::cerr << render_diagnosis(diagnosis, report::style_for(STDERR_FILENO)) << std::flush;
  }
  return diagnosis.count(doctor::Level::error);
}

}  // namespace

int preflight_command(const PreflightRequest& request) {
  const Variables variables = inherited_variables();
  const JobShape shape = job_shape(request.command, variables);
  if (shape.nodes > 1) {
    const Verdict verdict = verdict_without_run(shape.launcher + " waits for " + std::to_string(shape.nodes) +
                                                " nodes, and this is one; rehearse with one node");
    tell(verdict);
    return verdict.status;
  }
  Rehearsal rehearsal;
  rehearsal.steps = request.steps;
  rehearsal.devices = count_devices(request, shape, variables, rehearsal.remarks);
  set_device_memory(request, rehearsal);

  RunRequest run;
  run.flags = request.flags;
  run.flags.sim = rehearsal.devices;
  run.flags.sim_memory = std::to_string(rehearsal.device_memory);
  run.flags.stop_after = request.steps;
  run.command = request.command;
  run.before = [&] { rehearsal.errors_of_doctor = consult_doctor(request, shape); };
  run.judge = [&](const report::Report& report, int status, const std::string& untraced) {
    const Verdict verdict = verdict_on(report, rehearsal, status, untraced);
    tell(verdict);
    return verdict.status;
  };
  be_killed_first();
  return run_command(run);
}

}  // namespace devsan::launch
