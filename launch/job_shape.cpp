#include "launch/job_shape.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <span>

namespace devsan::launch {
namespace {

namespace fs = std::filesystem;

using Words = std::span<const std::string>;
using OptionNames = std::initializer_list<std::string_view>;

std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 ? std::optional(number) : std::nullopt;
}

std::optional<int> whole_number(const std::optional<std::string>& text) {
  return text ? whole_number(std::string_view(*text)) : std::nullopt;
}

// "--nproc_per_node" is the same option as "--nproc-per-node".
bool is_option(std::string_view word, std::string_view name) {
  return std::ranges::equal(word, name, [](char given, char known) { return (given == '_' ? '-' : given) == known; });
}

// What the first of these options that is there says.
std::optional<std::string> value_of_any(Words options, OptionNames names) {
  for (const std::string_view name : names) {
    if (const std::optional<std::string> value = value_of(options, name)) return value;
  }
  return std::nullopt;
}

std::string file_name_of(const std::string& word) {
  return fs::path(word).filename().string();
}

struct Launch {
  std::string launcher;
  Words options;  // up to the program
};

// The launcher that a word, or `-m` with a word, starts.
std::string launcher_of(const std::string& word, bool is_module) {
  const std::string name = is_module ? word : file_name_of(word);
  if (name == "torchrun" || name == "torch.distributed.run" || name == "torch.distributed.launch") return "torchrun";
  if (name == "deepspeed" || name == "deepspeed.launcher.runner") return "deepspeed";
  if (name == "accelerate" || name == "accelerate-launch") return "accelerate";
  if (name == "accelerate.commands.launch" || name == "accelerate.commands.accelerate_cli") return "accelerate";
  if (!is_module && (name == "mpirun" || name == "mpiexec")) return "mpirun";
  return !is_module && name == "srun" ? "srun" : "";
}

bool is_script(const std::string& word) {
  return word.ends_with(".py");
}

Launch find_launch(Words command) {
  for (std::size_t i = 0; i < command.size() && !is_script(command[i]); ++i) {
    const std::string launcher = launcher_of(command[i], i > 0 && command[i - 1] == "-m");
    if (launcher.empty()) continue;
    const Words rest = command.subspan(i + 1);
    return {launcher, rest.first(static_cast<std::size_t>(std::ranges::find_if(rest, is_script) - rest.begin()))};
  }
  return {};
}

// Of torchrun's "--nnodes=2" and "--nnodes=1:4": the least with which it starts.
int least_nodes(const std::optional<std::string>& text) {
  return text ? whole_number(std::string_view(*text).substr(0, text->find(':'))).value_or(1) : 1;
}

JobShape shape_of_torchrun(Words options, const Variables& variables) {
  const auto said = [&](std::string_view option, const char* variable) {
    const std::optional<std::string> given = value_of(options, option);
    return given ? given : variables(variable);
  };
  JobShape shape{"torchrun", 1, least_nodes(said("--nnodes", "PET_NNODES"))};
  if (const auto processes = said("--nproc-per-node", "PET_NPROC_PER_NODE")) shape.processes = whole_number(processes);
  return shape;
}

// "localhost:0,2" of DeepSpeed's --include: as many as make 2 a device.
std::optional<int> devices_of_include(const std::string& include) {
  const std::size_t colon = include.find(':');
  if (colon == std::string::npos) return std::nullopt;
  return devices_for_visible(std::string_view(include).substr(colon + 1, include.find('@') - colon - 1));
}

JobShape shape_of_deepspeed(Words options) {
  JobShape shape{"deepspeed", whole_number(value_of_any(options, {"--num-gpus", "--num-accelerators"})), 1};
  shape.nodes = std::max(whole_number(value_of(options, "--num-nodes")).value_or(1), 1);
  const std::optional<std::string> include = value_of_any(options, {"--include", "-i"});
  if (!shape.processes && include) shape.processes = devices_of_include(*include);
  return shape;
}

// A number in a file of `name: value` lines, as accelerate writes them.
std::optional<int> number_in_file(const fs::path& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::erase_if(line, [](char c) { return c == ' ' || c == '"' || c == '\'' || c == ',' || c == '\r'; });
    if (line.starts_with(name) && line.substr(name.size()).starts_with(':')) {
      return whole_number(std::string_view(line).substr(name.size() + 1));
    }
  }
  return std::nullopt;
}

fs::path config_of_accelerate(Words options, const Variables& variables) {
  if (const auto given = value_of(options, "--config-file")) return *given;
  fs::path home = variables("HF_HOME").value_or("");
  if (home.empty()) {
    const std::string cache = variables("XDG_CACHE_HOME").value_or(variables("HOME").value_or("") + "/.cache");
    home = fs::path(cache) / "huggingface";
  }
  const fs::path folder = home / "accelerate";
  std::error_code error;
  return folder / (fs::exists(folder / "default_config.json", error) ? "default_config.json" : "default_config.yaml");
}

JobShape shape_of_accelerate(Words options, const Variables& variables) {
  const fs::path config = config_of_accelerate(options, variables);
  const auto said = [&](std::string_view option, std::string_view entry) {
    const std::optional<int> given = whole_number(value_of(options, option));
    return given ? given : number_in_file(config, entry);
  };
  JobShape shape{"accelerate", said("--num-processes", "num_processes"), 1, config.string()};
  shape.nodes = std::max(said("--num-machines", "num_machines").value_or(1), 1);
  if (shape.processes) shape.processes = (*shape.processes + shape.nodes - 1) / shape.nodes;
  return shape;
}

}  // namespace

std::optional<std::string> value_of(std::span<const std::string> words, std::string_view name) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::size_t equals = std::min(word.find('='), word.size());
    if (!is_option(word.substr(0, equals), name)) continue;
    if (equals < word.size()) return std::string(word.substr(equals + 1));
    if (i + 1 < words.size()) return words[i + 1];
  }
  return std::nullopt;
}

int devices_for_visible(std::string_view list) {
  int devices = 0;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    const std::optional<int> number = whole_number(list.substr(0, end));
    if (!number) return devices;  // as CUDA, which ignores what follows
    devices = std::max(devices, *number + 1);
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return devices;
}

JobShape job_shape(const std::vector<std::string>& command, const Variables& variables) {
  const Launch launch = find_launch(command);
  if (launch.launcher == "torchrun") return shape_of_torchrun(launch.options, variables);
  if (launch.launcher == "deepspeed") return shape_of_deepspeed(launch.options);
  if (launch.launcher == "accelerate") return shape_of_accelerate(launch.options, variables);
  if (launch.launcher == "mpirun")
    return {"mpirun", whole_number(value_of_any(launch.options, {"-n", "-np", "--np"})), 1};
  if (launch.launcher == "srun") {
    return {"srun", whole_number(value_of_any(launch.options, {"--ntasks-per-node", "--ntasks", "-n"})), 1};
  }
  return {};
}

}  // namespace devsan::launch
