// accelerate's config, and whether it agrees with DeepSpeed's.
#include <algorithm>

#include "doctor/checks/accelerate_part.h"
#include "doctor/checks/release.h"
#include "doctor/config/known_keys.h"
#include "doctor/near_miss.h"
#include "doctor/text.h"

namespace devsan::doctor {
namespace {

constexpr char kLaunchPage[] = "https://huggingface.co/docs/accelerate/basic_tutorials/launch";
constexpr char kDeepSpeedPage[] = "https://huggingface.co/docs/accelerate/usage_guides/deepspeed";

class ConfigChecker : AccelerateChecker {
 public:
  ConfigChecker(const Facts& facts, Diagnosis& diagnosis)
      : AccelerateChecker(facts, diagnosis), release_(accelerate_release(facts)) {}

  void check_keys() {
    const KnownKeys& known = known_keys();
    const bool sagemaker = text_at(config_, "compute_environment") == "AMAZON_SAGEMAKER";
    check_section("", sagemaker ? known.accelerate_sagemaker : known.accelerate_keys);
    for (const auto& [name, section] : known.accelerate_sections) {
      if (name.empty()) continue;
      std::vector<std::string> names = section.names();
      if (!section.prefix.empty()) {
        for (const std::string& whole : section.names()) names.push_back(whole.substr(section.prefix.size()));
      }
      check_section(name, names);
    }
    if (!diagnosis_.has(Check::accelerate_keys)) {
      diagnosis_.ok(Check::accelerate_keys,
                    "accelerate " + known.accelerate + " knows every key of " + document_.name + ".", kLaunchPage);
    }
  }

  void check_values() {
    check_type();
    check_precision();
    check_processes(facts_, diagnosis_);
    check_config_file();
    check_stage();
    check_accelerate_values(facts_, diagnosis_);
    check_fsdp(facts_, diagnosis_);
    check_parallelism(facts_, diagnosis_);
    if (!diagnosis_.has(Check::accelerate_values)) {
      diagnosis_.ok(Check::accelerate_values, "The values of " + document_.name + " fit each other.", kLaunchPage);
    }
  }

 private:
  void tell(Check check, Level level, std::string found, std::string means, std::string cure, std::string source) {
    diagnosis_.add({check, level, std::move(found), std::move(means), std::move(cure), std::move(source)});
  }

  // A slip, or a key whose prefix may not be left out.
  static std::string guess_for(const std::string& key, const std::vector<std::string>& names) {
    const auto longer = std::ranges::find_if(names, [&](const std::string& name) { return name.ends_with("_" + key); });
    return longer != names.end() ? *longer : nearest(key, names);
  }

  // Another release may know more words, and an earlier one did.
  bool judges_words() const { return release_ == Release::same || release_ == Release::unknown; }

  void check_section(const std::string& path, const std::vector<std::string>& names) {
    const Json* section = path.empty() ? &config_ : find_value(config_, path);
    if (section == nullptr || !section->is_object()) return;
    for (const auto& [key, value] : section->items()) {
      if (has_word(names, key)) continue;
      const std::string whole = path.empty() ? key : path + "." + key;
      const auto earlier = known_keys().accelerate_earlier_keys.find(whole);
      if (earlier == known_keys().accelerate_earlier_keys.end()) {
        const std::string guess = guess_for(key, names);
        tell_unknown(path, whole, "is no key that accelerate " + known_keys().accelerate + " knows.",
                     guess.empty() ? "Take it out, or look it up." : "Did you mean " + guess + "?");
      } else if (release_ != Release::older) {
        tell_unknown(path, whole, "is a key of earlier releases of accelerate.",
                     earlier->second.empty() ? "Take it out." : "Write " + earlier->second + " in its place.");
      }
    }
  }

  // accelerate has a list of the outermost keys alone.
  void tell_unknown(const std::string& path, const std::string& whole, const std::string& what,
                    const std::string& cure) {
    const bool outermost = path.empty();
    tell(Check::accelerate_keys, outermost && judges_words() ? Level::error : Level::warning, whole + " " + what,
         !outermost       ? "accelerate passes it over without a word."
         : judges_words() ? "accelerate launch stops: the config has unknown keys."
                          : "The installed accelerate knows it, or accelerate launch stops.",
         cure, document_.name + ": " + whole);
  }

  void check_type() {
    const Json* type = find_value(config_, "distributed_type");
    if (type == nullptr) {
      tell_value(Level::error, "There is no distributed_type.", "accelerate launch stops without one.",
                 "Add it: NO, MULTI_GPU, DEEPSPEED or FSDP.", "distributed_type");
    } else if (type->is_boolean() && !type->get<bool>()) {
      return;  // NO without quotes, which works all the same
    } else if (!type->is_string()) {
      tell_value(Level::error, "distributed_type is " + shown(*type) + ".", "accelerate refuses it.",
                 "Use one of its words.", "distributed_type");
    } else if (!has_word(known_keys().distributed_types, type->get<std::string>()) &&
               text_at(config_, "compute_environment") != "AMAZON_SAGEMAKER") {
      check_unknown_type(type->get<std::string>());
    }
    check_sections_of_type();
  }

  void check_unknown_type(const std::string& type) {
    const KnownKeys& known = known_keys();
    const auto earlier = known.accelerate_earlier_types.find(type);
    const bool was = earlier != known.accelerate_earlier_types.end();
    if (was && release_ == Release::older) return;
    const std::string guess = was ? earlier->second : nearest(type, known.distributed_types);
    std::string cure = "Use one of " + listed(known.distributed_types) + ".";
    if (!guess.empty()) cure = was ? "Write " + guess + " in its place." : "Did you mean " + guess + "?";
    tell_value(judges_words() ? Level::error : Level::warning, "distributed_type is " + shown(Json(type)) + ".",
               judges_words() ? "accelerate refuses it." : "The installed accelerate knows it, or refuses it.", cure,
               "distributed_type");
  }

  bool has_section(std::string_view name) const {
    const Json* section = find_value(config_, name);
    return section != nullptr && section->is_object() && !section->empty();
  }

  void check_sections_of_type() {
    for (const auto& [section, wanted] :
         {std::pair("deepspeed_config", "DEEPSPEED"), {"fsdp_config", "FSDP"}, {"megatron_lm_config", "MEGATRON_LM"}}) {
      if (!has_section(section) || type_.empty() || type_ == wanted) continue;
      tell_value(Level::warning, std::string(section) + " is there, and distributed_type is " + type_ + ".",
                 "accelerate passes the section over.",
                 std::string("Set distributed_type to ") + wanted + ", or take it out.", section);
    }
  }

  void check_precision() {
    const Json* precision = find_value(config_, "mixed_precision");
    if (precision == nullptr || precision->is_null()) return;
    if (precision->is_boolean() && !precision->get<bool>()) {
      tell_value(Level::error, "mixed_precision is no without quotes, which YAML reads as false.",
                 "accelerate launch stops with AttributeError.", "Write 'no'.", "mixed_precision");
      return;
    }
    const std::string word = precision->is_string() ? lower(precision->get<std::string>()) : std::string();
    if (word != "no" && word != "fp16" && word != "bf16" && word != "fp8") {
      tell_value(Level::error, "mixed_precision is " + shown(*precision) + ".", "accelerate refuses it.",
                 "Use no, fp16, bf16 or fp8.", "mixed_precision");
    }
    if (word != "bf16") return;
    for (const Gpu& gpu : facts_.driver.visible) {
      if (gpu.major == 0 || gpu.major >= 8) continue;
      tell_value(Level::warning, "mixed_precision is bf16, and " + gpu.name + " has no bf16 units.",
                 "Torch emulates bf16 there, slowly.", "Use fp16.", "mixed_precision");
      return;
    }
  }

  // With a DeepSpeed config of its own accelerate refuses what that one should say.
  void check_config_file() {
    const std::string file = text_at(config_, "deepspeed_config.deepspeed_config_file");
    if (file.empty()) return;
    if (!facts_.deepspeed) {
      tell_value(Level::warning, "deepspeed_config_file " + file + " is not there, seen from this directory.",
                 "accelerate looks for it from where it is started.", "Start there, or give the file with --deepspeed.",
                 "deepspeed_config.deepspeed_config_file");
    }
    if (facts_.deepspeed && facts_.deepspeed->readable() &&
        find_value(facts_.deepspeed->value, "zero_optimization") == nullptr) {
      tell_value(Level::error, facts_.deepspeed->name + " has no zero_optimization.",
                 "accelerate raises ValueError: it asks for ZeRO's settings.",
                 "Add \"zero_optimization\": {\"stage\": 0}, or the stage that is meant, to that file.",
                 "deepspeed_config.deepspeed_config_file");
    }
    std::vector<std::string> refused;
    for (const char* name :
         {"gradient_accumulation_steps", "gradient_clipping", "zero_stage", "offload_optimizer_device",
          "offload_param_device", "offload_param_nvme_path", "offload_optimizer_nvme_path", "zero3_save_16bit_model"}) {
      if (find_value(config_, std::string("deepspeed_config.") + name) != nullptr) refused.push_back(name);
    }
    const Json* precision = find_value(config_, "mixed_precision");
    if (precision != nullptr && !precision->is_null()) refused.push_back("mixed_precision");
    if (refused.empty()) return;
    tell_value(Level::error,
               "deepspeed_config_file is given, and so " + std::string(refused.size() == 1 ? "is " : "are ") +
                   listed(refused) + ".",
               "accelerate stops: they belong in the DeepSpeed config.", "Take them out of this file.",
               "deepspeed_config.deepspeed_config_file");
  }

  void check_stage() {
    const std::optional<std::int64_t> stage = whole_number(find_value(config_, "deepspeed_config.zero_stage"));
    if (stage && (*stage < 0 || *stage > 3)) {
      tell_value(Level::error, "zero_stage is " + std::to_string(*stage) + ".", "DeepSpeed refuses it.",
                 "Use 0, 1, 2 or 3.", "deepspeed_config.zero_stage");
    }
    const Json* init = find_value(config_, "deepspeed_config.zero3_init_flag");
    if (is_true(init) && stage && *stage != 3) {
      tell_value(Level::warning, "zero3_init_flag is true, and zero_stage is " + std::to_string(*stage) + ".",
                 "accelerate sets it to false with a warning.", "Take it out.", "deepspeed_config.zero3_init_flag");
    }
  }

  const Release release_;
};

void tell_disagreement(const std::string& found, const std::string& means, Level level, Diagnosis& diagnosis) {
  diagnosis.add({Check::configs_agree, level, found, means, "Say it in one of the two files.", kDeepSpeedPage});
}

void compare_precision(const Json& accelerate, const DeepSpeedView& view, Diagnosis& diagnosis) {
  const std::string precision = lower(text_at(accelerate, "mixed_precision"));
  const bool wants_fp16 = precision == "fp16";
  const bool wants_bf16 = precision == "bf16" || precision == "fp8";
  if ((wants_fp16 && view.bf16 == Setting::yes) || (wants_bf16 && view.fp16 == Setting::yes)) {
    tell_disagreement("mixed_precision is " + precision + " for accelerate, and DeepSpeed's config enables " +
                          (wants_fp16 ? "bf16" : "fp16") + ".",
                      "accelerate raises ValueError.", Level::error, diagnosis);
  }
}

void compare_stage(const Json& accelerate, const DeepSpeedView& view, Diagnosis& diagnosis) {
  const std::optional<std::int64_t> stage = whole_number(find_value(accelerate, "deepspeed_config.zero_stage"));
  if (stage && view.stage && *stage != *view.stage) {
    tell_disagreement("zero_stage is " + std::to_string(*stage) + " for accelerate, " + std::to_string(*view.stage) +
                          " in DeepSpeed's config.",
                      "Which one holds depends on how the program starts DeepSpeed.", Level::warning, diagnosis);
  }
}

void compare_devices(const Json& accelerate, const DeepSpeedView& view, Diagnosis& diagnosis) {
  for (const auto& [key, offload] :
       {std::pair("offload_param_device", &view.param), {"offload_optimizer_device", &view.optimizer}}) {
    const std::string device = text_at(accelerate, std::string("deepspeed_config.") + key);
    if (device.empty() || offload->device == "auto" || device == offload->device) continue;
    tell_disagreement(
        std::string(key) + " is " + device + " for accelerate, " + offload->device + " in DeepSpeed's config.",
        "States may be on another device than expected.", Level::warning, diagnosis);
  }
}

}  // namespace

void check_accelerate(const Facts& facts, Diagnosis& diagnosis) {
  if (!facts.accelerate) return;
  const Document& document = *facts.accelerate;
  if (!document.readable()) {
    diagnosis.add({Check::accelerate_file, Level::error, document.name + " " + document.error + ".",
                   "Nothing about the config could be checked.",
                   document.cure.empty() ? "Give a file that `accelerate config` writes." : document.cure,
                   kLaunchPage});
    return;
  }
  for (const std::string& path : document.doubled) {
    diagnosis.add({Check::accelerate_file, Level::warning, path + " stands twice in " + document.name + ".",
                   "The last one holds.", "Keep one of them.", document.name + ": " + path});
  }
  if (document.doubled.empty()) diagnosis.ok(Check::accelerate_file, document.name + " can be read.", document.name);
  ConfigChecker checker(facts, diagnosis);
  checker.check_keys();
  checker.check_values();
}

void check_configs_agree(const Facts& facts, Diagnosis& diagnosis) {
  if (!facts.accelerate || !facts.deepspeed || !facts.accelerate->readable() || !facts.deepspeed->readable()) return;
  const DeepSpeedView view = view_of(facts.deepspeed->value);
  compare_precision(facts.accelerate->value, view, diagnosis);
  compare_stage(facts.accelerate->value, view, diagnosis);
  compare_devices(facts.accelerate->value, view, diagnosis);
  if (!diagnosis.has(Check::configs_agree)) {
    diagnosis.ok(Check::configs_agree, "The two configs do not contradict each other.", kDeepSpeedPage);
  }
}

}  // namespace devsan::doctor
