#include "doctor/memory/estimate.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "doctor/text.h"

namespace devsan::doctor {
namespace {

std::string plain(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

// Adds up terms "7.0 billion x 12 bytes / 8 = 9.8 GiB".
class Sum {
 public:
  explicit Sum(std::uint64_t params) : params_(params) {}

  void add(const std::string& what, double bytes, double parts, double share = 1) {
    const double term = static_cast<double>(params_) * bytes * share / parts;
    total_ += term;
    steps_.push_back(what + ": " + billions(params_) + " x " + plain(bytes) + " bytes" +
                     (share < 1 ? " x " + plain(share) : "") + (parts > 1 ? " / " + plain(parts) + " ranks" : "") +
                     " = " + gibibytes(term));
  }
  void add_known(const std::string& what, double bytes) {
    if (bytes <= 0) return;
    total_ += bytes;
    steps_.push_back(what + ": " + gibibytes(bytes));
  }
  void close(const std::string& what) {
    if (steps_.size() > 1) steps_.push_back(what + ": " + gibibytes(total_));
  }

  double total() const { return total_; }
  std::vector<std::string> take() { return std::move(steps_); }

 private:
  std::uint64_t params_;
  double total_ = 0;
  std::vector<std::string> steps_;
};

// Parameters are divided from stage 3 on, gradients from 2, optimizer states from 1.
double parts_from(const EstimateInput& input, int stage) {
  if (input.stage < stage) return 1;
  const bool in_groups = input.shard_ranks > 0 && input.shard_ranks < input.world_size;
  return static_cast<double>(in_groups ? input.shard_ranks : input.world_size);
}

bool has_secondary_weights(const EstimateInput& input) {
  return input.stage == 3 && input.secondary_ranks > 1;
}

const char* master_name(const StateBytes& bytes) {
  return bytes.master < 4 ? "bf16 master weights" : "fp32 master weights";
}

void add_device(const EstimateInput& input, Estimate& estimate) {
  Sum sum(input.params);
  const StateBytes& bytes = input.bytes;
  if (!input.params_on_host && !input.params_on_nvme) sum.add("weights", bytes.weights, parts_from(input, 3));
  if (has_secondary_weights(input) && !input.params_on_host && !input.params_on_nvme) {
    sum.add("second copy of the weights", bytes.weights, static_cast<double>(input.secondary_ranks));
  }
  const bool gradients_leave = input.offloaded_states > 0 && input.stage >= 2;
  if (!gradients_leave) sum.add("gradients", bytes.gradients, parts_from(input, 2));
  const double kept = 1 - input.offloaded_states;
  if (kept > 0) {
    if (bytes.master > 0) sum.add(master_name(bytes), bytes.master, parts_from(input, 1), kept);
    if (bytes.moments > 0) sum.add("optimizer's moments", bytes.moments, parts_from(input, 1), kept);
  }
  sum.close("each rank, without activations and buffers");
  estimate.device = sum.total();
  estimate.device_steps = sum.take();
}

// All of it is locked or pinned.
double add_for_nvme(const EstimateInput& input, Sum& sum) {
  const double before = sum.total();
  if (input.params_on_nvme) {
    const double stay =
        std::min(static_cast<double>(input.params) / parts_from(input, 3), static_cast<double>(input.most_in_memory));
    sum.add_known("weights that stay in memory (max_in_cpu)", stay * input.bytes.weights);
    sum.add_known("buffers of offload_param", input.buffers.params);
  }
  if (input.states_on_nvme) sum.add_known("buffers of offload_optimizer", input.buffers.states);
  return sum.total() - before;
}

double add_host(const EstimateInput& input, Estimate& estimate) {
  Sum sum(input.params);
  const StateBytes& bytes = input.bytes;
  double pinned = 0;
  if (input.params_on_host) {
    sum.add("weights", bytes.weights, parts_from(input, 3));
    if (has_secondary_weights(input)) {
      sum.add("second copy of the weights", bytes.weights, static_cast<double>(input.secondary_ranks));
    }
    if (input.pin_params) pinned = sum.total();
  }
  estimate.for_nvme = add_for_nvme(input, sum);
  pinned += estimate.for_nvme;
  const double before = sum.total();
  if (input.offloaded_states > 0) {
    const double share = input.offloaded_states;
    sum.add(bytes.offloaded_gradients < 4 ? "gradients" : "fp32 gradients", bytes.offloaded_gradients,
            parts_from(input, 1), share);
    if (!input.states_on_nvme) {
      if (bytes.master > 0) sum.add(master_name(bytes), bytes.master, parts_from(input, 1), share);
      if (bytes.moments > 0) sum.add("optimizer's moments", bytes.moments, parts_from(input, 1), share);
    }
    if (input.pin_states) pinned += sum.total() - before;
  }
  sum.close("each rank");
  estimate.host = sum.total();
  estimate.host_steps = sum.take();
  return pinned;
}

}  // namespace

StateBytes state_bytes(const DeepSpeedView& view) {
  StateBytes bytes;
  const bool half = view.fp16 != Setting::no || view.bf16 != Setting::no;
  if (!half) {  // fp32: the weights are their own master copy
    bytes.weights = 4;
    bytes.gradients = 4;
    bytes.master = view.optimizer.on() ? 4 : 0;
  }
  if (half && view.bf16_masters) {
    bytes.master = view.stage == 3 && !view.optimizer.on() ? 0 : 2;  // 0: the weights are their own master copy
    bytes.offloaded_gradients = 2;
  }
  const std::string& type = view.optimizer_type;
  if (type == "lion" || type == "adagrad" || type == "sgd" || type == "musgd" || type == "muon") bytes.moments = 4;
  if (half && view.bf16_states) bytes.moments /= 2;
  return bytes;
}

BufferBytes buffer_bytes(const DeepSpeedView& view, std::optional<std::uint64_t> params_of_rank) {
  BufferBytes bytes;
  const Offload& param = view.param;
  if (param.on_nvme()) {
    bytes.params =
        static_cast<double>(param.buffer_count) * static_cast<double>(param.buffer_size) * state_bytes(view).weights;
  }
  if (view.optimizer.on_nvme() && params_of_rank) {
    // A group ends with the parameter that makes it as large as sub_group_size.
    const std::uint64_t largest = std::min(*params_of_rank, view.sub_group_size);
    constexpr double kMasterBytes = 4;
    bytes.states = static_cast<double>(view.optimizer.buffer_count) * static_cast<double>(largest) * kMasterBytes;
  }
  return bytes;
}

Estimate estimate_memory(const EstimateInput& input) {
  Estimate estimate;
  add_device(input, estimate);
  const double pinned = add_host(input, estimate);
  const auto ranks = static_cast<double>(input.ranks_per_node);
  estimate.host_of_node = estimate.host * ranks;
  estimate.pinned_of_node = pinned * ranks;
  if (estimate.host > 0) {
    estimate.host_steps.push_back("all ranks of a node: " + plain(ranks) + " x " + gibibytes(estimate.host) + " = " +
                                  gibibytes(estimate.host_of_node));
    estimate.host_steps.push_back("with buffers, as DeepSpeed allows for them: x " + plain(kBufferFactor) + " = " +
                                  gibibytes(kBufferFactor * estimate.host_of_node));
    if (pinned > 0) estimate.host_steps.push_back("of it pinned: " + gibibytes(estimate.pinned_of_node));
  }
  return estimate;
}

}  // namespace devsan::doctor
