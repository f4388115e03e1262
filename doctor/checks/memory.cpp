// Whether the memory of the machine and of its GPUs suffices.
#include <algorithm>

#include "doctor/checks/checks.h"
#include "doctor/memory/estimate.h"
#include "doctor/text.h"

namespace devsan::doctor {
namespace {

constexpr char kMemoryPage[] = "https://deepspeed.readthedocs.io/en/latest/memory.html";

EstimateInput input_of(const Facts& facts, const DeepSpeedView& view) {
  EstimateInput input;
  input.params = *facts.plan.params;
  input.world_size = std::max<std::uint64_t>(facts.world_size().value_or(1), 1);
  input.ranks_per_node = std::max<std::uint64_t>(facts.gpus_per_node().value_or(1), 1);
  input.stage = view.stage.value_or(3);
  input.shard_ranks = view.shard_ranks;
  input.secondary_ranks = view.secondary_ranks;
  input.bytes = state_bytes(view);
  input.offloaded_states = view.optimizer.on() && input.stage > 0 ? view.optimizer.ratio : 0;
  input.states_on_nvme = view.optimizer.on_nvme();
  input.params_on_host = view.param.device == "cpu" && input.stage == 3;
  input.params_on_nvme = view.param.on_nvme() && input.stage == 3;
  input.pin_states = view.optimizer.pinned;
  input.pin_params = view.param.pinned;
  input.buffers = buffer_bytes(view, facts.params_of_rank());
  input.most_in_memory = view.param.max_in_cpu;
  return input;
}

// "for 7.0 billion parameters on 8 ranks, 4 on a node"
std::string basis(const EstimateInput& input) {
  return "for " + billions(input.params) + " parameters on " + counted(input.world_size, "rank") + ", " +
         std::to_string(input.ranks_per_node) + " on a node";
}

// What passes through host memory to NVMe has settings of its own.
constexpr char kSmallerBuffers[] =
    "Make sub_group_size, buffer_size, buffer_count or max_in_cpu smaller: they say what NVMe leaves in host memory.";

void check_host(const Facts& facts, const EstimateInput& input, const Estimate& estimate, Diagnosis& diagnosis) {
  if (estimate.host <= 0) return;
  const double left = static_cast<double>(facts.machine.memory_left());
  const double need = estimate.host_of_node;
  const bool too_much = left > 0 && need > left;
  const bool tight = left > 0 && kBufferFactor * need > left;
  Line line{Check::offload_estimate,
            too_much ? Level::error : (tight ? Level::warning : Level::ok),
            "Offloading needs " + gibibytes(need) + " of host memory on each node, " + basis(input) + "; " +
                (left > 0 ? gibibytes(left) + " are free." : "how much is free is not known."),
            "",
            "",
            kMemoryPage,
            estimate.host_steps};
  if (too_much || tight) {
    line.means = too_much
                     ? "The kernel kills the training while it allocates its states."
                     : "It fits, but not with DeepSpeed's buffers: it may be killed in a save or at an epoch's end.";
    line.cure = estimate.for_nvme > 0
                    ? kSmallerBuffers
                    : "Use more nodes, offload to NVMe, or offload less (offload_param off, ratio below 1).";
  }
  diagnosis.add(std::move(line));
  if (estimate.pinned_of_node > 0.5 * static_cast<double>(facts.machine.memory_total) &&
      facts.machine.memory_total > 0) {
    diagnosis.add(
        {Check::offload_estimate, Level::warning,
         gibibytes(estimate.pinned_of_node) + " of host memory would be pinned, of " +
             gibibytes(static_cast<double>(facts.machine.memory_total)) + ".",
         "Pinned memory cannot be paged out; the file cache and other processes get what is left.",
         estimate.for_nvme > 0 ? kSmallerBuffers : "Set \"pin_memory\": false for offload_optimizer or offload_param.",
         kMemoryPage});
  }
}

void check_device(const Facts& facts, const EstimateInput& input, const Estimate& estimate, Diagnosis& diagnosis) {
  if (estimate.device <= 0) {
    diagnosis.ok(Check::device_estimate, "All states of the model are offloaded; a GPU holds the layers at work.",
                 kMemoryPage);
    return;
  }
  std::uint64_t smallest = 0;
  for (const Gpu& gpu : facts.driver.visible) {
    if (smallest == 0 || gpu.memory < smallest) smallest = gpu.memory;
  }
  const auto has = static_cast<double>(smallest);
  const bool too_much = smallest > 0 && estimate.device > has;
  Line line{Check::device_estimate,
            too_much ? Level::error : Level::ok,
            "The states of the model take " + gibibytes(estimate.device) + " of each GPU, " + basis(input) +
                (smallest > 0 ? "; a GPU has " + gibibytes(has) + "." : "; activations and buffers come on top."),
            "",
            "",
            kMemoryPage,
            estimate.device_steps};
  if (too_much) {
    line.means = "Training runs out of GPU memory before its first step.";
    line.cure = "Use more GPUs, a higher ZeRO stage, or offload.";
  }
  diagnosis.add(std::move(line));
}

}  // namespace

void check_memory(const Facts& facts, Diagnosis& diagnosis) {
  const std::optional<DeepSpeedSettings> settings = facts.deepspeed_settings();
  if (!settings) return;
  const DeepSpeedView view = view_of(settings->value, facts.packages.version("deepspeed"));
  if (!facts.plan.params) {
    if (view.offloads()) {
      diagnosis.ok(Check::offload_estimate,
                   "With --params N (and --world-size, --gpus-per-node) the memory is worked out.", kMemoryPage);
    }
    return;
  }
  const EstimateInput input = input_of(facts, view);
  const Estimate estimate = estimate_memory(input);
  check_host(facts, input, estimate, diagnosis);
  check_device(facts, input, estimate, diagnosis);
}

}  // namespace devsan::doctor
