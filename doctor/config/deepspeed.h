// What a DeepSpeed config says, in the terms of training.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "doctor/config/document.h"

namespace devsan::doctor {

enum class Setting { no, yes, automatic };

struct Offload {
  std::string device = "none";  // "cpu", "nvme"; "auto" is left to transformers or accelerate
  bool pinned = false;
  double ratio = 1;
  std::string path;  // of NVMe
  std::uint64_t buffer_count = 0;
  std::uint64_t buffer_size = 0;  // parameters
  std::uint64_t max_in_cpu = 0;   // parameters
  bool pipeline_read = false;
  bool pipeline_write = false;

  bool on_nvme() const { return device == "nvme"; }
  bool on() const { return device == "cpu" || device == "nvme"; }
};

struct DeepSpeedView {
  std::optional<int> stage = 0;  // nothing for "auto"
  Offload param;
  Offload optimizer;
  Setting fp16 = Setting::no;
  Setting bf16 = Setting::no;
  std::uint64_t sub_group_size = 0;   // parameters
  std::uint64_t secondary_ranks = 1;  // ZeRO++ keeps a second copy of the weights, divided among as many (hpz)
  std::uint64_t shard_ranks = 0;      // MiCS divides all states among as many; 0: among all
  bool bf16_masters = false;          // master weights and gradients
  bool bf16_states = false;           // the optimizer's moments
  std::string optimizer_type;         // lower case; empty where the program brings its own

  std::optional<std::uint64_t> batch;  // train_batch_size
  std::optional<std::uint64_t> micro_batch;
  std::optional<std::uint64_t> accumulation;

  bool offloads() const { return param.on() || optimizer.on(); }
};

// `release`: that of DeepSpeed, on which some defaults depend; empty where it is not known.
DeepSpeedView view_of(const Json& config, std::string_view release = {});

bool is_auto(const Json* value);
// true, and what pydantic takes for it: 1, "true", "yes".
bool is_true(const Json* value);
// A whole number, also one that is written 5e8 or "16".
std::optional<std::int64_t> whole_number(const Json* value);
std::optional<double> number(const Json* value);

}  // namespace devsan::doctor
