#include "doctor/config/deepspeed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "doctor/versions/pep440.h"

namespace devsan::doctor {
namespace {

Setting setting_at(const Json& config, std::string_view path) {
  const Json* value = find_value(config, path);
  if (is_auto(value)) return Setting::automatic;
  return is_true(value) ? Setting::yes : Setting::no;
}

std::optional<std::uint64_t> count_at(const Json& config, std::string_view path) {
  const std::optional<std::int64_t> value = whole_number(find_value(config, path));
  return value && *value >= 0 ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

// The default of `pin_memory` has been true since 0.19.5.
bool pins_by_default(std::string_view release) {
  static const std::optional<VersionRange> kPinning = VersionRange::parse(">=0.19.5");
  const std::optional<Version> version = parse_version(release);
  return version && kPinning->contains(*version);
}

Offload offload_at(const Json& config, const std::string& path, std::string_view release) {
  Offload offload;
  const std::string device = text_at(config, path + ".device");
  if (!device.empty()) offload.device = device;
  const Json* pinned = find_value(config, path + ".pin_memory");
  offload.pinned = pinned != nullptr ? is_true(pinned) : pins_by_default(release);
  if (const std::optional<double> ratio = number(find_value(config, path + ".ratio"))) offload.ratio = *ratio;
  offload.path = text_at(config, path + ".nvme_path");
  // What DeepSpeed takes where the config does not say.
  offload.buffer_count = count_at(config, path + ".buffer_count").value_or(path.ends_with("offload_param") ? 5 : 4);
  offload.buffer_size = count_at(config, path + ".buffer_size").value_or(100'000'000);
  offload.max_in_cpu = count_at(config, path + ".max_in_cpu").value_or(1'000'000'000);
  offload.pipeline_read = is_true(find_value(config, path + ".pipeline_read"));
  offload.pipeline_write = is_true(find_value(config, path + ".pipeline_write"));
  return offload;
}

// The forms of releases before 0.3.16, which later ones convert.
void apply_deprecated(const Json& config, DeepSpeedView& view) {
  const auto apply = [&](const char* key, Offload& offload) {
    if (!offload.on() && is_true(find_value(config, std::string("zero_optimization.") + key))) offload.device = "cpu";
  };
  apply("cpu_offload", view.optimizer);
  apply("cpu_offload_param", view.param);
  const Json* zero = find_value(config, "zero_optimization");
  if (zero != nullptr && zero->is_boolean()) view.stage = zero->get<bool>() ? 1 : 0;
}

}  // namespace

bool is_auto(const Json* value) {
  return value != nullptr && value->is_string() && value->get_ref<const std::string&>() == "auto";
}

bool is_true(const Json* value) {
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  if (value->is_number()) return value->get<double>() == 1;
  constexpr std::array<std::string_view, 6> kWords = {"true", "yes", "on", "1", "t", "y"};
  return value->is_string() && std::ranges::find(kWords, lower(value->get<std::string>())) != kWords.end();
}

std::optional<double> number(const Json* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  if (!value->is_string()) return std::nullopt;
  const auto& text = value->get_ref<const std::string&>();
  char* end = nullptr;
  const double result = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' ? std::optional(result) : std::nullopt;
}

std::optional<std::int64_t> whole_number(const Json* value) {
  constexpr double kLargest = 9e18;
  const std::optional<double> found = number(value);
  if (!found || std::floor(*found) != *found || std::abs(*found) > kLargest) return std::nullopt;
  return static_cast<std::int64_t>(*found);
}

DeepSpeedView view_of(const Json& config, std::string_view release) {
  DeepSpeedView view;
  const Json* stage = find_value(config, "zero_optimization.stage");
  if (is_auto(stage)) {
    view.stage.reset();
  } else if (const std::optional<std::int64_t> value = whole_number(stage)) {
    view.stage = static_cast<int>(std::clamp<std::int64_t>(*value, -1, 99));
  }
  view.param = offload_at(config, "zero_optimization.offload_param", release);
  view.optimizer = offload_at(config, "zero_optimization.offload_optimizer", release);
  apply_deprecated(config, view);
  view.sub_group_size = count_at(config, "zero_optimization.sub_group_size").value_or(1'000'000'000);
  view.secondary_ranks =
      std::max<std::uint64_t>(count_at(config, "zero_optimization.zero_hpz_partition_size").value_or(1), 1);
  view.shard_ranks = count_at(config, "zero_optimization.mics_shard_size").value_or(0);
  view.bf16_masters = is_true(find_value(config, "bf16.bf16_master_weights_and_grads"));
  view.bf16_states = view.bf16_masters && is_true(find_value(config, "bf16.bf16_optimizer_states"));
  view.fp16 = setting_at(config, "fp16.enabled");
  view.bf16 = setting_at(config, "bf16.enabled");
  if (find_value(config, "bf16") == nullptr) view.bf16 = setting_at(config, "bfloat16.enabled");
  view.optimizer_type = lower(text_at(config, "optimizer.type"));
  view.batch = count_at(config, "train_batch_size");
  view.micro_batch = count_at(config, "train_micro_batch_size_per_gpu");
  view.accumulation = count_at(config, "gradient_accumulation_steps");
  return view;
}

}  // namespace devsan::doctor
