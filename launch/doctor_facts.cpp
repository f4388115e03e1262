#include "launch/doctor_facts.h"

#include <cstring>
#include <map>
#include <vector>

#include "doctor/config/deepspeed.h"
#include "doctor/config/other_library.h"
#include "launch/cache.h"
#include "launch/hooks.h"
#include "launch/installation.h"
#include "launch/jobs.h"
#include "launch/target_python.h"
#include "launch/torch_probe.h"
#include "preload/hooks_fit.h"

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

// Prints where this Python looks for packages, with a mark before it, since site customisation may print lines of its
// own. Nothing is imported but what Python starts with.
constexpr char kPathProbe[] = R"(
import os, sys
version = ".".join(map(str, sys.version_info[:3]))
entries = [os.path.abspath(entry) for entry in sys.path if entry]
os.write(1, b"\n\x01doctor\x00" + b"\x00".join(os.fsencode(field) for field in [version, *entries]) + b"\x00\n")
)";
constexpr std::string_view kMark{
    "\n\x01"
    "doctor\0",
    9};

struct PathProbe {
  doctor::PythonFact python;
  std::vector<fs::path> path;
};

PathProbe probe_path(const std::string& name) {
  PathProbe probe;
  const std::optional<std::string> python = find_program(name);
  if (!python) {
    probe.python.trouble = "There is no program " + name + ".";
    return probe;
  }
  probe.python.path = *python;
  const Captured answer = capture({*python, "-c", kPathProbe});
  const std::size_t start = answer.start_error == 0 ? answer.output.find(kMark) : std::string::npos;
  if (start == std::string::npos) {
    probe.python.trouble = *python + " is not a Python interpreter that works" +
                           (answer.start_error != 0 ? std::string(": ") + std::strerror(answer.start_error) : "") + ".";
    return probe;
  }
  std::string_view rest = std::string_view(answer.output).substr(start + kMark.size());
  for (std::size_t end = rest.find('\0'); end != std::string_view::npos; end = rest.find('\0')) {
    const std::string_view field = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (probe.python.version.empty()) {
      probe.python.version = field;
    } else {
      probe.path.emplace_back(field);
    }
  }
  return probe;
}

doctor::HooksFact hooks_of(const Torch& torch) {
  const FoundHooks found = find_hooks(find_installation(), torch.library());
  doctor::HooksFact fact;
  if (!found.found()) {
    const std::string why = why_unusable(found.choice.cached, found.choice.cache);
    fact.level = why.empty() ? doctor::Level::ok : doctor::Level::warning;
    fact.found = why.empty() ? "There are no hooks for torch " + torch.version + " yet: the first run compiles them."
                             : "No hooks for torch " + torch.version + " can be used: " + why + ".";
    fact.cure = "`devsan build` compiles them ahead of time.";
    return fact;
  }
  const bool simulated = has_simulation(found.directory().c_str());
  fact.found = "devsan takes the hooks in " + found.directory().string() + " (" + name_of(found.choice.place) + ")" +
               (simulated ? "." : ", which have no simulated devices.");
  for (const std::string& complaint : found.complaints) fact.found += " Passed over: " + complaint + ".";
  return fact;
}

doctor::HooksFact hooks_for(const std::string& python) {
  try {
    const ProbeResult probed = probe_torch(python);
    if (probed.torch) return hooks_of(*probed.torch);
    return {doctor::Level::warning, "devsan has no hooks here: " + probed.reason + ".", ""};
  } catch (const std::exception& error) {
    return {doctor::Level::warning,
            std::string("devsan could not find out which hooks it would use: ") + error.what() + ".", ""};
  }
}

doctor::Document read_config_of(doctor::Library library, const std::string& file) {
  doctor::Document document = doctor::read_config(file);
  doctor::refuse_of_other_library(document, library);
  return document;
}

// The DeepSpeed config that the accelerate config names, where there is such a file.
std::optional<std::string> config_that_accelerate_names(const doctor::Facts& facts) {
  if (!facts.accelerate || !facts.accelerate->readable()) return std::nullopt;
  const doctor::Json* name = doctor::find_value(facts.accelerate->value, "deepspeed_config.deepspeed_config_file");
  std::error_code error;
  if (name == nullptr || !name->is_string() || !fs::exists(name->get<std::string>(), error)) return std::nullopt;
  return name->get<std::string>();
}

std::map<std::string, doctor::Folder> folders_named_by(const doctor::Facts& facts) {
  std::map<std::string, doctor::Folder> folders;
  const std::optional<doctor::DeepSpeedSettings> settings = facts.deepspeed_settings();
  if (!settings) return folders;
  const doctor::DeepSpeedView view = doctor::view_of(settings->value);
  for (const doctor::Offload* offload : {&view.param, &view.optimizer}) {
    if (offload->on_nvme() && !offload->path.empty()) folders[offload->path] = doctor::read_folder(offload->path);
  }
  return folders;
}

}  // namespace

doctor::Facts gather_facts(const DoctorFlags& flags) {
  doctor::Facts facts;
  facts.plan = flags.plan;
  if (flags.driver) facts.driver = doctor::ask_driver();
  facts.machine = doctor::read_machine();
  facts.environment = doctor::read_environment();
  const PathProbe probe = probe_path(flags.python);
  facts.python = probe.python;
  facts.packages = doctor::Packages::read(probe.path);
  facts.torch = doctor::read_torch_build(probe.path, facts.packages);
  if (flags.hooks && facts.torch) facts.hooks = hooks_for(probe.python.path);
  if (flags.accelerate) facts.accelerate = read_config_of(doctor::Library::accelerate, *flags.accelerate);
  if (flags.deepspeed) {
    facts.deepspeed = read_config_of(doctor::Library::deepspeed, *flags.deepspeed);
  } else if (const std::optional<std::string> named = config_that_accelerate_names(facts)) {
    facts.deepspeed = read_config_of(doctor::Library::deepspeed, *named);
  }
  facts.folders = folders_named_by(facts);
  return facts;
}

}  // namespace devsan::launch
