#include "doctor/facts.h"

#include <algorithm>

#include "doctor/checks/checks.h"
#include "doctor/config/deepspeed.h"

namespace devsan::doctor {
namespace {

// As accelerate's DeepSpeedPlugin fills a config from its own keys.
Json settings_of_accelerate(const Json& config) {
  const std::int64_t stage = whole_number(find_value(config, "deepspeed_config.zero_stage")).value_or(2);
  const std::string precision = text_at(config, "mixed_precision");
  Json settings = {{"zero_optimization", {{"stage", stage}}},
                   {"fp16", {{"enabled", precision == "fp16"}}},
                   {"bf16", {{"enabled", precision == "bf16" || precision == "fp8"}}}};
  for (const char* what : {"offload_param", "offload_optimizer"}) {
    const std::string key = std::string("deepspeed_config.") + what;
    const std::string device = text_at(config, key + "_device");
    if (!device.empty()) settings["zero_optimization"][what]["device"] = device;
    const std::string path = text_at(config, key + "_nvme_path");
    if (!path.empty() && path != "none") settings["zero_optimization"][what]["nvme_path"] = path;
  }
  return settings;
}

}  // namespace

std::string DeepSpeedSettings::setting(const std::string& section, const std::string& key,
                                       const std::string& text) const {
  if (of_accelerate) return (section.empty() ? "zero_" : section + "_") + key + ": " + text;
  const bool number = text.find_first_not_of("0123456789") == std::string::npos;
  return "\"" + key + "\": " + (number ? text : "\"" + text + "\"");
}

std::optional<DeepSpeedSettings> Facts::deepspeed_settings() const {
  if (deepspeed) {
    return deepspeed->readable() ? std::optional(DeepSpeedSettings{deepspeed->value, deepspeed->name}) : std::nullopt;
  }
  if (!accelerate || !accelerate->readable() || text_at(accelerate->value, "distributed_type") != "DEEPSPEED") {
    return std::nullopt;
  }
  const bool elsewhere = !text_at(accelerate->value, "deepspeed_config.deepspeed_config_file").empty();
  if (elsewhere) return std::nullopt;
  return DeepSpeedSettings{settings_of_accelerate(accelerate->value), accelerate->name, true};
}

std::optional<std::uint64_t> Facts::world_size() const {
  if (plan.world_size) return plan.world_size;
  if (!accelerate || !accelerate->readable()) return std::nullopt;
  const std::optional<std::int64_t> processes = whole_number(find_value(accelerate->value, "num_processes"));
  return processes && *processes > 0 ? std::optional(static_cast<std::uint64_t>(*processes)) : std::nullopt;
}

std::optional<std::uint64_t> Facts::params_of_rank() const {
  if (!plan.params) return std::nullopt;
  return *plan.params / std::max<std::uint64_t>(world_size().value_or(1), 1);
}

std::optional<std::uint64_t> Facts::gpus_per_node() const {
  if (plan.gpus_per_node) return plan.gpus_per_node;
  const std::optional<std::uint64_t> world = world_size();
  if (world && accelerate && accelerate->readable()) {
    const std::int64_t machines = whole_number(find_value(accelerate->value, "num_machines")).value_or(1);
    if (machines > 0) return std::max<std::uint64_t>(*world / static_cast<std::uint64_t>(machines), 1);
  }
  const std::uint64_t here = driver.visible.size();
  if (!world) return here > 0 ? std::optional(here) : std::nullopt;
  return here > 0 ? std::min(here, *world) : *world;
}

Diagnosis diagnose(const Facts& facts) {
  Diagnosis diagnosis;
  for (auto* check : {check_driver,
                      check_wsl,
                      check_visible_devices,
                      check_mig,
                      check_torch,
                      check_torch_driver,
                      check_arch_list,
                      check_cuda_libraries,
                      check_nccl,
                      check_toolkit,
                      check_hooks,
                      check_known_bugs,
                      check_limits,
                      check_deepspeed_file,
                      check_deepspeed_keys,
                      check_deepspeed_batch,
                      check_deepspeed_precision,
                      check_deepspeed_offload,
                      check_deepspeed_nvme,
                      check_deepspeed_options,
                      check_deepspeed_auto,
                      check_accelerate,
                      check_configs_agree,
                      check_memory}) {
    check(facts, diagnosis);
  }
  diagnosis.sort();
  diagnosis.shorten();
  return diagnosis;
}

}  // namespace devsan::doctor
