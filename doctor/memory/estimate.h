// How much memory the states of a model take under ZeRO, worked out step by step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/config/deepspeed.h"

namespace devsan::doctor {

// Bytes of one parameter in each of its forms.
struct StateBytes {
  double weights = 2;  // as the GPU computes with them
  double gradients = 2;
  double master = 4;               // copy that the optimizer updates, in fp32
  double moments = 8;              // Adam's two; one for Lion, Adagrad and SGD with momentum
  double offloaded_gradients = 4;  // fp32, beside offloaded optimizer states
};

// What passes through host memory on its way to NVMe; DeepSpeed locks it, whatever pin_memory says. Of each rank.
struct BufferBytes {
  double params = 0;
  double states = 0;  // 0 where the number of parameters is not known

  double total() const { return params + states; }
};

struct EstimateInput {
  std::uint64_t params = 0;
  std::uint64_t world_size = 1;
  std::uint64_t ranks_per_node = 1;
  std::uint64_t shard_ranks = 0;      // among which MiCS divides states; 0: among all
  std::uint64_t secondary_ranks = 1;  // among which ZeRO++ divides a second copy of the weights; 1: there is none
  int stage = 0;
  StateBytes bytes;
  double offloaded_states = 0;  // the share of the optimizer states that is on the host: 0 to 1
  bool states_on_nvme = false;
  bool params_on_host = false;
  bool params_on_nvme = false;
  bool pin_states = false;
  bool pin_params = false;
  BufferBytes buffers;
  std::uint64_t most_in_memory = 0;  // of a rank's parameters that are on NVMe: max_in_cpu
};

struct Estimate {
  double device = 0;          // of each rank, on its GPU
  double host = 0;            // of each rank
  double for_nvme = 0;        // of these: buffers, and parameters up to max_in_cpu
  double host_of_node = 0;    // of all ranks of a node
  double pinned_of_node = 0;  // of these
  std::vector<std::string> device_steps;
  std::vector<std::string> host_steps;
};

// DeepSpeed's own estimates allow for buffers by this factor.
constexpr double kBufferFactor = 1.5;

StateBytes state_bytes(const DeepSpeedView& view);
BufferBytes buffer_bytes(const DeepSpeedView& view, std::optional<std::uint64_t> params_of_rank);
Estimate estimate_memory(const EstimateInput& input);

}  // namespace devsan::doctor
