#include "doctor/memory/estimate.h"

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
  return input.stage >= stage ? static_cast<double>(input.world_size) : 1;
}

void add_device(const EstimateInput& input, Estimate& estimate) {
  Sum sum(input.params);
  const StateBytes& bytes = input.bytes;
  if (!input.params_on_host && !input.params_on_nvme) sum.add("weights", bytes.weights, parts_from(input, 3));
  const bool gradients_leave = input.offloaded_states > 0 && input.stage >= 2;
  if (!gradients_leave) sum.add("gradients", bytes.gradients, parts_from(input, 2));
  const double kept = 1 - input.offloaded_states;
  if (kept > 0) {
    if (bytes.master > 0) sum.add("fp32 master weights", bytes.master, parts_from(input, 1), kept);
    if (bytes.moments > 0) sum.add("optimizer's moments", bytes.moments, parts_from(input, 1), kept);
  }
  sum.close("each rank, without activations and buffers");
  estimate.device = sum.total();
  estimate.device_steps = sum.take();
}

double add_host(const EstimateInput& input, Estimate& estimate) {
  Sum sum(input.params);
  const StateBytes& bytes = input.bytes;
  double pinned = 0;
  if (input.params_on_host) {
    sum.add("weights", bytes.weights, parts_from(input, 3));
    if (input.pin_params) pinned = sum.total();
  }
  const double before = sum.total();
  if (input.offloaded_states > 0) {
    const double share = input.offloaded_states;
    sum.add("fp32 gradients", bytes.offloaded_gradients, parts_from(input, 1), share);
    if (!input.states_on_nvme) {
      if (bytes.master > 0) sum.add("fp32 master weights", bytes.master, parts_from(input, 1), share);
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
  const std::string& type = view.optimizer_type;
  if (type == "lion" || type == "adagrad" || type == "sgd" || type == "musgd" || type == "muon") bytes.moments = 4;
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
