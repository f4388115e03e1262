// FSDP, and how accelerate divides a model in several ways at once.
#include <algorithm>
#include <array>

#include "doctor/checks/accelerate_part.h"
#include "doctor/config/key_values.h"
#include "doctor/config/known_keys.h"
#include "doctor/text.h"
#include "doctor/versions/pep440.h"

namespace devsan::doctor {
namespace {

constexpr char kFsdp[] = "fsdp_config";
constexpr char kParallelism[] = "parallelism_config";

// Python's bool() of a value.
bool is_truthy(const Json& value) {
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return value.is_boolean() ? value.get<bool>() : !value.is_null() && value != 0;
}

class FsdpChecker : AccelerateChecker {
 public:
  FsdpChecker(const Facts& facts, Diagnosis& diagnosis)
      : AccelerateChecker(facts, diagnosis), second_(option("fsdp_version", "1") == "2") {}

  void check() {
    check_loading();
    check_activations();
    check_state_dict();
    check_torch();
    if (second_) {
      check_passed_over();
    } else {
      check_resharding();
    }
  }

 private:
  std::string option(const std::string& key, const std::string& unset) const {
    return lower(accelerate_text(config_, kFsdp, key, unset));
  }
  bool is_on(const std::string& key) const { return is_true(accelerate_value(config_, kFsdp, key)); }
  static std::string path(std::string_view key) { return std::string(kFsdp) + "." + std::string(key); }

  // The launcher looks at both before anything converts them, so a missing key is true, and so is any text.
  void check_loading() {
    const Json* loading = accelerate_value(config_, kFsdp, "fsdp_cpu_ram_efficient_loading");
    const Json* syncing = accelerate_value(config_, kFsdp, "fsdp_sync_module_states");
    if ((loading != nullptr && !is_truthy(*loading)) || syncing == nullptr || is_truthy(*syncing)) return;
    tell_value(Level::error,
               "fsdp_cpu_ram_efficient_loading is " + std::string(loading == nullptr ? "on by default" : "on") +
                   ", and fsdp_sync_module_states is " + shown(*syncing) + ".",
               "accelerate launch raises ValueError: only rank 0 loads the weights, and nothing brings them to the "
               "others.",
               "Set fsdp_sync_module_states to true, or fsdp_cpu_ram_efficient_loading to false.",
               path("fsdp_sync_module_states"));
  }

  void check_activations() {
    if (!is_on("fsdp_activation_checkpointing_offload")) return;
    const bool checkpoints = is_on("fsdp_activation_checkpointing");
    if (checkpoints && second_) return;
    tell_value(Level::error,
               std::string("fsdp_activation_checkpointing_offload is on, and ") +
                   (checkpoints ? "fsdp_version is 1." : "fsdp_activation_checkpointing is off."),
               "Each process raises ValueError.",
               checkpoints ? "Set fsdp_version to 2, or take it out."
                           : "Set fsdp_activation_checkpointing to true, or take it out.",
               path("fsdp_activation_checkpointing_offload"));
  }

  void check_state_dict() {
    const std::string kind = option("fsdp_state_dict_type", "");
    if (!second_ || (kind != "local_state_dict" && kind != "2")) return;
    tell_value(Level::error, "fsdp_state_dict_type is LOCAL_STATE_DICT, and fsdp_version is 2.",
               "Each process raises ValueError: FSDP 2 does not have it.", "Use SHARDED_STATE_DICT or FULL_STATE_DICT.",
               path("fsdp_state_dict_type"));
  }

  void check_torch() {
    const std::optional<Version> have = parse_version(facts_.packages.version("torch"));
    if (!second_ || !have || compare(*have, *parse_version("2.6.0")) >= 0) return;
    tell_value(Level::error, "fsdp_version is 2, and torch is " + facts_.packages.version("torch") + ".",
               "Each process raises ImportError: FSDP 2 needs torch 2.6.0.", "Update torch, or set fsdp_version to 1.",
               path("fsdp_version"));
  }

  void check_passed_over() {
    std::vector<std::string> found;
    for (const auto& [key, info] : known_keys().accelerate_sections.at(kFsdp).keys) {
      const bool of_first = info.when && info.when->key == "fsdp_version" && has_word(info.when->values, "1");
      if (of_first && accelerate_value(config_, kFsdp, key) != nullptr) found.push_back(key);
    }
    if (found.empty()) return;
    tell_value(Level::warning, "fsdp_version is 2, which passes over " + listed(found) + ".",
               "Only FSDP 1 has these options.",
               has_word(found, "fsdp_sharding_strategy")
                   ? "Take them out; fsdp_reshard_after_forward (true or false) is in place of the strategy."
                   : "Take them out.",
               path(found.front()));
  }

  // `accelerate config` asks for it with FSDP 1, and `accelerate launch` sets the other one over it.
  void check_resharding() {
    const Json* wanted = accelerate_value(config_, kFsdp, "fsdp_reshard_after_forward");
    if (wanted == nullptr || is_true(wanted) ||
        lower(python_text(*wanted)) == option("fsdp_sharding_strategy", "full_shard")) {
      return;
    }
    tell_value(Level::warning, "fsdp_reshard_after_forward is " + shown(*wanted) + ", and fsdp_version is 1.",
               "FSDP 1 goes by fsdp_sharding_strategy, which is FULL_SHARD where it is not given.",
               "Set fsdp_sharding_strategy, or fsdp_version to 2.", path("fsdp_reshard_after_forward"));
  }

  const bool second_;
};

class ParallelismChecker : AccelerateChecker {
 public:
  ParallelismChecker(const Facts& facts, Diagnosis& diagnosis) : AccelerateChecker(facts, diagnosis) {}

  void check() {
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      sizes_[i] = number_at(kParallelism, key(kSizes[i]), 1);
      // The check of types tells what is no size; nobody has as many processes as the larger ones ask for.
      if (sizes_[i] < 1 || sizes_[i] > kMost || product_ > kMost) return;
      product_ *= sizes_[i];
    }
    check_pairs();
    check_attention();
    if (product_ > 1) check_product();
  }

 private:
  static constexpr std::int64_t kMost = 1'000'000;
  static constexpr std::array<const char*, 5> kSizes = {"dp_replicate_size", "dp_shard_size", "tp_size", "cp_size",
                                                        "sp_size"};

  static std::string key(const std::string& name) { return std::string(kParallelism) + "_" + name; }
  std::int64_t size(std::string_view name) const {
    return sizes_[static_cast<std::size_t>(std::ranges::find(kSizes, name) - kSizes.begin())];
  }

  void tell_size(const std::string& found, const std::string& cure, const std::string& name) {
    tell_value(Level::error, found, "Each process raises ValueError.", cure,
               std::string(kParallelism) + "." + key(name));
  }

  void check_pairs() {
    if (size("cp_size") > 1 && size("sp_size") > 1) {
      tell_size("cp_size and sp_size are both above 1.", "Set one of them to 1.", "cp_size");
    }
    if ((size("tp_size") > 1 || size("cp_size") > 1) && size("dp_replicate_size") > 1 && size("dp_shard_size") == 1) {
      tell_size("tp_size or cp_size is above 1, with dp_replicate_size above 1 and dp_shard_size 1.",
                "Set dp_shard_size above 1, or dp_replicate_size to 1.", "dp_replicate_size");
    }
  }

  void check_attention() {
    const std::string name = accelerate_text(config_, kParallelism, key("sp_attn_implementation"), "sdpa");
    const bool of_hub = name.find('/') != std::string::npos && name.find("flash-attn") != std::string::npos;
    if (size("sp_size") == 1 || of_hub || name == "sdpa" || name == "flash_attention_2" ||
        name == "flash_attention_3") {
      return;
    }
    tell_size("sp_attn_implementation is " + shown(Json(name)) + ".",
              "Use sdpa, flash_attention_2, flash_attention_3, or a kernel of the hub for flash-attn.",
              "sp_attn_implementation");
  }

  void check_product() {
    const bool fsdp2 = type_ == "FSDP" && accelerate_text(config_, kFsdp, "fsdp_version", "1") == "2";
    const bool several = type_.starts_with("MULTI_") && type_ != "MULTI_CPU";
    const std::int64_t processes = number_at("", "num_processes", product_);
    if (!fsdp2 && !several && type_ != "DEEPSPEED") {
      tell_size("parallelism_config is for FSDP 2, DeepSpeed or several GPUs.",
                type_ == "FSDP" ? "Set fsdp_version to 2." : "Set distributed_type to FSDP, with fsdp_version 2.",
                "dp_shard_size");
    } else if (size("sp_size") == 1 && processes != product_) {
      tell_size("The sizes of parallelism_config multiply to " + std::to_string(product_) + ", and num_processes is " +
                    std::to_string(processes) + ".",
                "Make them multiply to num_processes.", "dp_shard_size");
    } else if (fsdp2 && size("dp_shard_size") == 1 && size("cp_size") == 1) {
      tell_size("distributed_type is FSDP, and neither dp_shard_size nor cp_size is above 1.",
                "Lower tp_size or dp_replicate_size so that FSDP has ranks to divide among, or take FSDP out.",
                "dp_shard_size");
    }
  }

  std::array<std::int64_t, 5> sizes_{};
  std::int64_t product_ = 1;
};

}  // namespace

void check_fsdp(const Facts& facts, Diagnosis& diagnosis) {
  if (reads_section(facts.accelerate->value, kFsdp)) FsdpChecker(facts, diagnosis).check();
}

void check_parallelism(const Facts& facts, Diagnosis& diagnosis) {
  if (find_value(facts.accelerate->value, kParallelism) != nullptr) ParallelismChecker(facts, diagnosis).check();
}

}  // namespace devsan::doctor
