// ZeRO: offloading, and options that exclude or need each other.
#include <algorithm>

#include "doctor/checks/checks.h"
#include "doctor/checks/release.h"
#include "doctor/config/deepspeed.h"
#include "doctor/config/known_keys.h"
#include "doctor/near_miss.h"
#include "doctor/text.h"

namespace devsan::doctor {
namespace {

constexpr char kOffloadPage[] = "https://www.deepspeed.ai/docs/config-json/#parameter-offloading";
constexpr char kOptimizerPage[] = "https://www.deepspeed.ai/docs/config-json/#optimizer-offloading";
constexpr char kZeroPage[] = "https://www.deepspeed.ai/docs/config-json/#zero-optimizations-for-fp16-training";
constexpr char kConfigPage[] = "https://www.deepspeed.ai/docs/config-json/";
constexpr char kWslGuide[] =
    "https://docs.nvidia.com/cuda/wsl-user-guide/index.html#known-limitations-for-linux-cuda-applications";

// The config under the eyes of the checks below, and a short way to tell what is wrong with it.
class ZeroChecker {
 public:
  ZeroChecker(const Facts& facts, DeepSpeedSettings settings, Check check, Diagnosis& diagnosis)
      : facts_(facts),
        settings_(std::move(settings)),
        view_(view_of(settings_.value, facts.packages.version("deepspeed"))),
        check_(check),
        diagnosis_(diagnosis) {}

  void check_offload() {
    check_stage_of_offload();
    check_devices();
    check_partial();
    check_pinning();
    check_optimizer();
    if (!diagnosis_.has(check_)) {
      diagnosis_.ok(check_,
                    view_.offloads() ? "Parameters are on " + place(view_.param) + ", optimizer states on " +
                                           place(view_.optimizer) + "."
                                     : "Nothing is offloaded.",
                    kOffloadPage);
    }
  }

  void check_options() {
    check_saving();
    check_stage_of_options();
    check_values();
    check_activations();
    check_optimizer_parameters();
    if (!diagnosis_.has(check_)) {
      diagnosis_.ok(
          check_,
          "ZeRO stage " + (view_.stage ? std::to_string(*view_.stage) : "\"auto\"") + ": its options fit each other.",
          kZeroPage);
    }
  }

 private:
  static std::string place(const Offload& offload) {
    return offload.on() ? offload.device : (offload.device == "auto" ? "a device that is filled in" : "the GPU");
  }

  void tell(Level level, std::string found, std::string means, std::string cure, std::string source) {
    diagnosis_.add({check_, level, std::move(found), std::move(means), std::move(cure), std::move(source)});
  }

  std::string key(std::string_view path) const { return settings_.file + ": " + std::string(path); }
  bool stage_is(int stage) const { return !view_.stage || *view_.stage == stage; }
  const Json* at(std::string_view path) const { return find_value(settings_.value, path); }
  std::string stage_text() const { return "stage " + std::to_string(*view_.stage); }

  std::string stage_3() const { return settings_.setting("", "stage", "3"); }

  void check_stage_of_offload() {
    const std::string param = settings_.offload_key("offload_param");
    const std::string optimizer = settings_.offload_key("offload_optimizer");
    if (view_.param.on() && !stage_is(3)) {
      tell(Level::error, param + " asks for " + view_.param.device + ", and ZeRO is at " + stage_text() + ".",
           "Only stage 3 divides and offloads parameters; they stay on the GPU.",
           "Set " + stage_3() + ", or take " + param + " out.", kOffloadPage);
    }
    if (view_.optimizer.on() && view_.stage == 0) {
      tell(Level::error, optimizer + " asks for " + view_.optimizer.device + ", and ZeRO is off (stage 0).",
           "Nothing is offloaded.", "Set " + stage_3() + ", 2 or 1.", kOptimizerPage);
    }
    if (view_.optimizer.device == "nvme" && view_.stage && *view_.stage > 0 && !stage_is(3)) {
      tell(Level::error, optimizer + " asks for nvme, and ZeRO is at " + stage_text() + ".",
           "Only stage 3 offloads to NVMe.",
           "Set " + stage_3() + ", or " + settings_.setting("offload_optimizer", "device", "cpu") + ".",
           kOptimizerPage);
    }
  }

  void check_devices() {
    const bool filled = view_.param.device == "auto" || view_.optimizer.device == "auto";
    if (!view_.param.on() || filled || view_.param.device == view_.optimizer.device) return;
    const bool rest = !view_.optimizer.on();
    tell(Level::warning,
         settings_.offload_key("offload_param") + " is on " + view_.param.device + ", " +
             settings_.offload_key("offload_optimizer") + " on " +
             (rest ? std::string("the GPU") : view_.optimizer.device) + ".",
         rest ? "Parameters leave the GPU while their optimizer states, six times as large, stay on it; steps copy "
                "between "
                "the two."
              : "Parameters and their optimizer states are kept on different devices, and every step copies between "
                "them.",
         "Offload both to one device, unless that is meant.", kOffloadPage);
  }

  void check_partial() {
    if (view_.optimizer.ratio >= 1 || !view_.optimizer.on()) return;
    if (!stage_is(3)) {
      tell(Level::error, "offload_optimizer.ratio is below 1 at " + stage_text() + ".",
           "DeepSpeed fails its assertion: partial offloading is for stage 3.", "Take ratio out, or use stage 3.",
           kOptimizerPage);
      return;
    }
    tell(Level::warning, "offload_optimizer.ratio is " + shown(Json(view_.optimizer.ratio)) + ".",
         "A part of the optimizer states stays on the GPU: code that expects all of them on one device meets both.",
         "Leave ratio at 1, unless that is meant.", kOptimizerPage);
  }

  void check_pinning() {
    if (!facts_.machine.wsl2) return;
    for (const auto& [name, offload] :
         {std::pair("offload_param", &view_.param), {"offload_optimizer", &view_.optimizer}}) {
      if (!offload->on() || !offload->pinned) continue;
      tell(Level::warning, std::string(name) + " pins its memory, and this is WSL2.",
           "WSL2 limits pinned memory; large allocations fail with \"out of memory\" while memory is free.",
           "Set \"pin_memory\": false.", kWslGuide);
    }
  }

  void check_optimizer() {
    if (!view_.optimizer_type.empty()) check_optimizer_type(text_at(settings_.value, "optimizer.type"));
    if (view_.optimizer.on() && is_true(at("optimizer.params.torch_adam"))) {
      tell(Level::warning, "optimizer.params.torch_adam is set, and optimizer states are offloaded.",
           "torch's Adam updates them on the CPU, several times slower than DeepSpeedCPUAdam.", "Take torch_adam out.",
           kOptimizerPage);
    }
  }

  // DeepSpeed takes its own names in capitals or not, and those of torch.optim as they are written. With ZeRO, most of
  // these need a flag; no flag makes it take a name that it does not know.
  void check_optimizer_type(const std::string& type) {
    const OptimizerNames& names = known_keys().optimizers;
    const bool own = has_name(names.deepspeed, type);
    const Release release = deepspeed_release(facts_);
    const bool earlier = has_name(names.earlier, type) && release != Release::same && release != Release::newer;
    if (!own && !earlier && !has_word(names.torch, type)) {
      tell(Level::error, "optimizer.type is " + shown(Json(type)) + ", which DeepSpeed does not know.",
           "deepspeed.initialize fails, unless the program passes an optimizer: it is not a supported DeepSpeed "
           "Optimizer.",
           cure_for_optimizer(type), kConfigPage);
    } else if (!has_name(names.zero, type) && view_.stage.value_or(1) != 0 &&
               !is_true(at("zero_allow_untested_optimizer"))) {
      tell(Level::error, "ZeRO is not tested with the optimizer " + shown(Json(type)) + ".",
           "deepspeed.initialize fails its assertion.",
           "Add \"zero_allow_untested_optimizer\": true, or use " + listed(names.zero, "or") + ".", kConfigPage);
    }
  }

  static bool has_name(const std::vector<std::string>& names, const std::string& type) {
    return std::ranges::any_of(names, [&](const std::string& name) { return lower(name) == lower(type); });
  }

  // DeepSpeed's classes, such as FusedAdam, are what it takes for a name within theirs.
  static std::string cure_for_optimizer(const std::string& type) {
    const OptimizerNames& names = known_keys().optimizers;
    std::vector<std::string> known = names.deepspeed;
    known.insert(known.end(), names.torch.begin(), names.torch.end());
    const std::string guess = likely_meant(type, known);
    const std::string passing = "or pass the optimizer to deepspeed.initialize and take \"optimizer\" out.";
    return guess.empty() ? "Use " + listed(names.deepspeed, "or") + ", a class of torch.optim, " + passing
                         : "Write \"type\": \"" + guess + "\", " + passing;
  }

  void check_saving() {
    const Json* gather = at("zero_optimization.stage3_gather_16bit_weights_on_model_save");
    if (gather == nullptr) gather = at("zero_optimization.stage3_gather_fp16_weights_on_model_save");
    if (view_.stage != 3 || is_true(gather) || is_auto(gather)) return;
    tell(Level::warning, "stage3_gather_16bit_weights_on_model_save is off at stage 3.",
         "save_16bit_model and Trainer.save_model write no weights that load without DeepSpeed.",
         "Set it to true (it gathers the model on each save), or convert checkpoints with zero_to_fp32.py.",
         "https://huggingface.co/docs/transformers/deepspeed#save");
  }

  void check_stage_of_options() {
    const auto need_stage3 = [&](std::string_view path, bool set, Level level, std::string_view means) {
      if (!set || stage_is(3)) return;
      tell(level, std::string(path) + " is set at " + stage_text() + ".", std::string(means),
           "Use stage 3, or take it out.", key(path));
    };
    need_stage3("zero_optimization.zero_hpz_partition_size",
                whole_number(at("zero_optimization.zero_hpz_partition_size")).value_or(1) > 1, Level::warning,
                "Only stage 3 has partitions of parameters.");
    need_stage3("zero_optimization.offload_optimizer.super_offload",
                is_true(at("zero_optimization.offload_optimizer.super_offload")), Level::error,
                "Only stage 3 has this way to offload.");
    const Json* norm = at("zero_optimization.compute_grad_norm");
    if (norm != nullptr && norm->is_boolean() && !norm->get<bool>() && view_.stage && *view_.stage != 1 &&
        *view_.stage != 2) {
      tell(Level::error, "compute_grad_norm is false at " + stage_text() + ".",
           "DeepSpeed refuses it outside of stages 1 and 2.", "Take it out.",
           key("zero_optimization.compute_grad_norm"));
    }
    check_norm_is_needed();
    const Json* reduce = at("gradient_allreduce_op");
    if (reduce != nullptr && reduce->is_string() && *reduce == "sum" && view_.stage == 3) {
      tell(Level::error, "gradient_allreduce_op is \"sum\" at stage 3.", "DeepSpeed refuses it.", "Use \"mean\".",
           key("gradient_allreduce_op"));
    }
    const std::optional<std::uint64_t> world = facts_.world_size();
    const std::int64_t partition = whole_number(at("zero_optimization.zero_hpz_partition_size")).value_or(1);
    if (partition > 1 && world && *world % static_cast<std::uint64_t>(partition) != 0) {
      tell(Level::error,
           "zero_hpz_partition_size " + std::to_string(partition) + " does not divide the world size " +
               std::to_string(*world) + ".",
           "DeepSpeed cannot make its secondary groups.", "Use the number of GPUs of a node.",
           key("zero_optimization.zero_hpz_partition_size"));
    }
  }

  void check_norm_is_needed() {
    const Json* norm = at("zero_optimization.compute_grad_norm");
    if (norm == nullptr || is_true(norm) || is_auto(norm)) return;
    const auto need = [&](const std::string& why, const std::string& cure) {
      tell(Level::error, "compute_grad_norm is false, and " + why + ".", "DeepSpeed raises ValueError.",
           "Take compute_grad_norm out, or " + cure + ".", key("zero_optimization.compute_grad_norm"));
    };
    if (number(at("gradient_clipping")).value_or(0) > 0)
      need("gradient_clipping clips by it", "set \"gradient_clipping\": 0");
    if (view_.optimizer.on()) need("offload_optimizer needs it", "take offload_optimizer out");
  }

  void check_one_of(std::string_view path, std::initializer_list<std::string_view> words) {
    const Json* value = at(path);
    if (value == nullptr || value->is_null() || is_auto(value)) return;
    const std::string text = lower(value->is_string() ? value->get<std::string>() : std::string());
    if (std::ranges::find(words, text) != words.end()) return;
    tell(Level::error, std::string(path) + " is " + shown(*value) + ".", "DeepSpeed refuses it.",
         "Use one of " + listed({words.begin(), words.end()}) + ".", key(path));
  }

  void check_values() {
    check_one_of("communication_data_type", {"fp16", "bf16", "fp32"});
    check_one_of("checkpoint.tag_validation", {"ignore", "warn", "fail"});
    check_one_of("gradient_allreduce_op", {"mean", "sum"});
    if (view_.stage && (*view_.stage < 0 || *view_.stage > 3)) return;  // which the check of keys tells
    const std::optional<double> scale = number(at("fp16.loss_scale"));
    if (scale && *scale < 0) {
      tell(Level::error, "fp16.loss_scale is " + shown(*at("fp16.loss_scale")) + ".", "DeepSpeed refuses it.",
           "0 scales dynamically; a number above 0 is a fixed scale.", key("fp16.loss_scale"));
    }
  }

  void check_activations() {
    const bool partitioned = is_true(at("activation_checkpointing.partition_activations"));
    if (is_true(at("activation_checkpointing.contiguous_memory_optimization")) && !partitioned) {
      tell(Level::error, "activation_checkpointing.contiguous_memory_optimization needs partition_activations.",
           "DeepSpeed fails its assertion.", "Set \"partition_activations\": true as well.",
           key("activation_checkpointing.contiguous_memory_optimization"));
    }
  }

  void check_optimizer_parameters() {
    if (at("optimizer.params.max_grad_norm") == nullptr) return;
    tell(Level::error, "optimizer.params has max_grad_norm.", "DeepSpeed raises: it is no parameter of an optimizer.",
         "Use \"gradient_clipping\" in the outermost object.", key("optimizer.params.max_grad_norm"));
  }

  const Facts& facts_;
  const DeepSpeedSettings settings_;
  DeepSpeedView view_;
  Check check_;
  Diagnosis& diagnosis_;
};

}  // namespace

void check_deepspeed_offload(const Facts& facts, Diagnosis& diagnosis) {
  if (auto settings = facts.deepspeed_settings()) {
    ZeroChecker(facts, std::move(*settings), Check::deepspeed_offload, diagnosis).check_offload();
  }
}

void check_deepspeed_options(const Facts& facts, Diagnosis& diagnosis) {
  if (!facts.deepspeed || !facts.deepspeed->readable()) return;
  ZeroChecker(facts, *facts.deepspeed_settings(), Check::deepspeed_options, diagnosis).check_options();
}

}  // namespace devsan::doctor
