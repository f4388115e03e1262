#include "doctor/facts.h"

#include <algorithm>

#include "doctor/checks/checks.h"
#include "doctor/config/deepspeed.h"

namespace devsan::doctor {

std::optional<std::uint64_t> Facts::world_size() const {
  if (plan.world_size) return plan.world_size;
  if (!accelerate || !accelerate->readable()) return std::nullopt;
  const std::optional<std::int64_t> processes = whole_number(find_value(accelerate->value, "num_processes"));
  return processes && *processes > 0 ? std::optional(static_cast<std::uint64_t>(*processes)) : std::nullopt;
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
                      check_deepspeed_options,
                      check_deepspeed_auto,
                      check_accelerate,
                      check_configs_agree,
                      check_memory}) {
    check(facts, diagnosis);
  }
  diagnosis.sort();
  return diagnosis;
}

}  // namespace devsan::doctor
