#include "launch/preflight_doctor.h"

#include <filesystem>

#include "launch/doctor_facts.h"
#include "launch/target_python.h"

namespace devsan::launch {
namespace {

bool is_of_the_command(doctor::Check check) {
  return check == doctor::Check::known_bugs || doctor::info_of(check).group == doctor::Group::config;
}

bool is_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

// The file that the command names for DeepSpeed; empty: none that is there. The option is DeepSpeed's own, or that of a
// program that hands the file on, such as a Trainer's.
std::string deepspeed_config_of(const std::vector<std::string>& command) {
  for (const std::string_view option :
       {"--deepspeed-config", "--deepspeed", "--ds-config", "--deepspeed-config-file"}) {
    const std::optional<std::string> file = value_of(command, option);
    if (file && file->ends_with(".json") && is_file(*file)) return *file;
  }
  return {};
}

}  // namespace

doctor::Diagnosis diagnose_command(const std::vector<std::string>& command, const JobShape& shape) {
  DoctorFlags flags;
  flags.driver = false;  // the devices are simulated, as many as the job has
  flags.hooks = false;
  if (const std::optional<std::string> python = find_python(command)) flags.python = *python;
  if (const std::string config = deepspeed_config_of(command); !config.empty()) flags.deepspeed = config;
  if (is_file(shape.config)) flags.accelerate = shape.config;
  if (shape.processes) flags.plan.world_size = static_cast<std::uint64_t>(*shape.processes);
  doctor::Diagnosis relevant;
  const doctor::Diagnosis all = doctor::diagnose(gather_facts(flags));
  for (const doctor::Line& line : all.lines()) {
    if (line.level != doctor::Level::ok && is_of_the_command(line.check)) relevant.add(line);
  }
  return relevant;
}

}  // namespace devsan::launch
