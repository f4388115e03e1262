// Batch arithmetic, precision, and values "auto".
#include <algorithm>
#include <initializer_list>

#include "doctor/checks/checks.h"
#include "doctor/checks/release.h"
#include "doctor/config/accelerate.h"
#include "doctor/config/deepspeed.h"
#include "doctor/config/known_keys.h"
#include "doctor/text.h"

namespace devsan::doctor {
namespace {

constexpr char kBatchPage[] = "https://www.deepspeed.ai/docs/config-json/#batch-size-related-parameters";
constexpr char kPrecisionPage[] = "https://www.deepspeed.ai/docs/config-json/#bfloat16-training-options";
constexpr char kTransformersPage[] = "https://huggingface.co/docs/transformers/deepspeed";
constexpr char kBf16Hardware[] = "https://developer.nvidia.com/cuda-gpus";

std::string source_of(const Facts& facts, std::string_view key) {
  return facts.deepspeed->name + ": " + std::string(key);
}

// How many ranks see the same samples, each a part of them; accelerate's number takes the place of DeepSpeed's.
std::uint64_t sequence_parallel_size(const Facts& facts) {
  std::optional<std::int64_t> size;
  if (facts.accelerate && facts.accelerate->readable() &&
      text_at(facts.accelerate->value, "distributed_type") == "DEEPSPEED") {
    size = whole_number(accelerate_value(facts.accelerate->value, "parallelism_config", "parallelism_config_sp_size"));
  }
  if (size.value_or(1) <= 1) size = whole_number(find_value(facts.deepspeed->value, "sequence_parallel_size"));
  return size && *size > 1 ? static_cast<std::uint64_t>(*size) : 1;
}

// How many processes share the batch. Nothing where that is not known.
std::optional<std::uint64_t> data_parallel_size(const Facts& facts) {
  const Json& config = facts.deepspeed->value;
  if (find_value(config, "tensor_parallel") != nullptr || find_value(config, "pipeline") != nullptr)
    return std::nullopt;
  const std::optional<std::uint64_t> world = facts.world_size();
  const std::uint64_t sequence = sequence_parallel_size(facts);
  return world && *world % sequence == 0 ? std::optional(*world / sequence) : std::nullopt;
}

// Nothing where the product is more than a number holds.
std::optional<std::uint64_t> product_of(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::nullopt : std::optional(product);
}

void tell_batch(const std::string& found, const std::string& cure, std::vector<std::string> steps,
                Diagnosis& diagnosis) {
  diagnosis.add({Check::deepspeed_batch, Level::error, found,
                 "deepspeed.initialize fails its assertion about batch sizes.", cure, kBatchPage, std::move(steps)});
}

void tell_huge_batch(const std::string& product, Diagnosis& diagnosis) {
  tell_batch(product + " is more than any batch has.", "Give smaller numbers.", {}, diagnosis);
}

// Whether the sequence-parallel ranks can be told apart from those that share the batch.
bool sequences_divide(const Facts& facts, Diagnosis& diagnosis) {
  const std::optional<std::uint64_t> world = facts.world_size();
  const std::uint64_t sequence = sequence_parallel_size(facts);
  if (!world || *world % sequence == 0) return true;
  tell_batch("The sequence-parallel size " + std::to_string(sequence) + " does not divide the world size " +
                 std::to_string(*world) + ".",
             "Make the world size a multiple of " + std::to_string(sequence) + ".", {}, diagnosis);
  return false;
}

// All three are given, so that the number of processes follows from them.
void check_whole_batch(const Facts& facts, const DeepSpeedView& view, Diagnosis& diagnosis) {
  const std::string product = std::to_string(*view.micro_batch) + " x " + std::to_string(*view.accumulation);
  const std::optional<std::uint64_t> per_process = product_of(*view.micro_batch, *view.accumulation);
  if (!per_process) return tell_huge_batch(product, diagnosis);
  const std::optional<std::uint64_t> world = data_parallel_size(facts);
  const std::optional<std::uint64_t> whole = product_of(*per_process, world.value_or(1));
  if (!whole) return tell_huge_batch(product + " x " + std::to_string(*world), diagnosis);
  if (*view.batch % *per_process != 0) {
    tell_batch(
        "train_batch_size " + std::to_string(*view.batch) + " is no multiple of micro batch x accumulation.",
        "Make train_batch_size a multiple of " + std::to_string(*per_process) + ", or leave one of the three out.",
        {product + " = " + std::to_string(*per_process) + " in each process"}, diagnosis);
  } else if (world && *view.batch != *whole) {
    tell_batch("train_batch_size is " + std::to_string(*view.batch) + ", micro batch x accumulation x world size is " +
                   std::to_string(*whole) + ".",
               "Set train_batch_size to " + std::to_string(*whole) + ", or leave one of the three out.",
               {product + " x " + std::to_string(*world) + " = " + std::to_string(*whole)}, diagnosis);
  } else {
    diagnosis.add(
        {Check::deepspeed_batch,
         Level::ok,
         "The batch sizes fit " + counted(*view.batch / *per_process, "process") + ".",
         "",
         "",
         kBatchPage,
         {product + " x " + std::to_string(*view.batch / *per_process) + " = " + std::to_string(*view.batch)}});
  }
}

// The third is worked out by dividing, which must leave no rest.
void check_partial_batch(const Facts& facts, const DeepSpeedView& view, Diagnosis& diagnosis) {
  const std::uint64_t given = view.micro_batch.value_or(view.accumulation.value_or(1));
  const std::uint64_t world = data_parallel_size(facts).value_or(1);
  const std::optional<std::uint64_t> share = product_of(given, world);
  if (!share) return tell_huge_batch(std::to_string(given) + " x " + std::to_string(world), diagnosis);
  if (*view.batch % *share == 0 && *view.batch > 0) {
    diagnosis.ok(Check::deepspeed_batch, "The batch sizes can be divided among the processes.", kBatchPage);
    return;
  }
  tell_batch("train_batch_size " + std::to_string(*view.batch) + " cannot be divided by " + std::to_string(given) +
                 " x " + counted(world, "process") + ".",
             "Make it a multiple of " + std::to_string(*share) + ".", {}, diagnosis);
}

bool any_auto(const Json& config) {
  return std::ranges::any_of(std::initializer_list<const char*>{"train_batch_size", "train_micro_batch_size_per_gpu",
                                                                "gradient_accumulation_steps"},
                             [&](const char* key) { return is_auto(find_value(config, key)); });
}

// Up to the release that took elasticity out, it works out the batch sizes.
bool elastic(const Facts& facts) {
  const Release release = deepspeed_release(facts);
  return (release == Release::older || release == Release::unknown) &&
         is_true(find_value(facts.deepspeed->value, "elasticity.enabled"));
}

bool zero_among(const DeepSpeedView& view) {
  return view.batch == 0u || view.micro_batch == 0u || view.accumulation == 0u;
}

void check_masters(const Facts& facts, const DeepSpeedView& view, Diagnosis& diagnosis) {
  const Json& config = facts.deepspeed->value;
  const bool zero = view.stage.value_or(1) > 0;
  for (const char* key :
       {"fp16.fp16_master_weights_and_grads", "bf16.bf16_master_weights_and_grads", "bf16.bf16_optimizer_states"}) {
    if (!is_true(find_value(config, key)) || zero) continue;
    diagnosis.add({Check::deepspeed_precision, Level::error, std::string(key) + " is set without ZeRO.",
                   "deepspeed.initialize fails its assertion.", "Set zero_optimization.stage to 1, 2 or 3.",
                   source_of(facts, key)});
  }
  if (is_true(find_value(config, "bf16.bf16_optimizer_states")) &&
      !is_true(find_value(config, "bf16.bf16_master_weights_and_grads"))) {
    diagnosis.add({Check::deepspeed_precision, Level::error,
                   "bf16.bf16_optimizer_states needs bf16.bf16_master_weights_and_grads.",
                   "deepspeed.initialize fails its assertion.", "Set both, or neither.",
                   source_of(facts, "bf16.bf16_optimizer_states")});
  }
}

void check_bf16_hardware(const Facts& facts, Diagnosis& diagnosis) {
  for (const Gpu& gpu : facts.driver.visible) {
    if (gpu.major == 0 || gpu.major >= 8) continue;
    diagnosis.add({Check::deepspeed_precision, Level::warning,
                   "bf16 is enabled, and " + gpu.name + " (compute capability " + std::to_string(gpu.major) + "." +
                       std::to_string(gpu.minor) + ") has no bf16 units.",
                   "Torch emulates bf16 there, slowly; operators without emulation fail.",
                   "Use fp16, or a GPU of compute capability 8.0 or later.", kBf16Hardware});
    return;
  }
}

struct AutoValue {
  std::string path;
  bool filled = false;
};

// Sections in which "auto" is a value of DeepSpeed's own.
bool own_auto(std::string_view path) {
  for (const std::string_view prefix :
       {"pipeline", "autotuning", "data_types", "compile", "tensor_parallel", "expert_parallel"}) {
    if (path.starts_with(prefix)) return true;
  }
  return path.ends_with("replace_method");
}

void collect_auto(const Json& object, const std::string& path, std::vector<AutoValue>& found) {
  for (const auto& [key, value] : object.items()) {
    const std::string whole = path.empty() ? key : path + "." + key;
    if (value.is_object()) collect_auto(value, whole, found);
    if (!is_auto(&value) || own_auto(whole)) continue;
    const KnownKeys& known = known_keys();
    found.push_back(
        {whole, has_word(known.filled_by_transformers, whole) || has_word(known.filled_by_accelerate, whole)});
  }
}

void tell_unfilled(const Facts& facts, const std::string& path, Diagnosis& diagnosis) {
  const bool passed_on = path.starts_with("optimizer.params.") || path.starts_with("scheduler.params.");
  diagnosis.add({Check::deepspeed_auto, passed_on ? Level::error : Level::warning,
                 path + " is \"auto\", which neither transformers nor accelerate fills in.",
                 passed_on ? "The text \"auto\" reaches the optimizer or the scheduler, which fails."
                           : "DeepSpeed takes its default, or fails on the text.",
                 "Write a value, or take the key out.", source_of(facts, path)});
}

}  // namespace

void check_deepspeed_batch(const Facts& facts, Diagnosis& diagnosis) {
  if (!facts.deepspeed || !facts.deepspeed->readable() || any_auto(facts.deepspeed->value)) return;
  if (elastic(facts) || !sequences_divide(facts, diagnosis)) return;
  const DeepSpeedView view = view_of(facts.deepspeed->value);
  if (!view.batch && !view.micro_batch) {
    tell_batch("Neither train_batch_size nor train_micro_batch_size_per_gpu is given.",
               "Give one of them; \"auto\" where transformers or accelerate fills it in.", {}, diagnosis);
  } else if (zero_among(view)) {
    tell_batch("A batch size or the number of accumulation steps is 0.", "Give a number above 0.", {}, diagnosis);
  } else if (view.batch && view.micro_batch && view.accumulation) {
    check_whole_batch(facts, view, diagnosis);
  } else if (view.batch) {
    check_partial_batch(facts, view, diagnosis);
  } else {
    diagnosis.ok(Check::deepspeed_batch, "train_batch_size follows from the micro batch and the number of processes.",
                 kBatchPage);
  }
}

void check_deepspeed_precision(const Facts& facts, Diagnosis& diagnosis) {
  if (!facts.deepspeed || !facts.deepspeed->readable()) return;
  const DeepSpeedView view = view_of(facts.deepspeed->value);
  if (view.fp16 == Setting::yes && view.bf16 == Setting::yes) {
    diagnosis.add({Check::deepspeed_precision, Level::error, "fp16 and bf16 are both enabled.",
                   "deepspeed.initialize fails: they cannot be enabled at once.",
                   "Enable one: bf16 where the GPU has it (compute capability 8.0 or later).", kPrecisionPage});
  }
  if (find_value(facts.deepspeed->value, "bf16") != nullptr &&
      find_value(facts.deepspeed->value, "bfloat16") != nullptr) {
    diagnosis.add({Check::deepspeed_precision, Level::warning, "There are sections bf16 and bfloat16.",
                   "DeepSpeed reads bf16 and passes the other one over.", "Keep bf16.", source_of(facts, "bfloat16")});
  }
  check_masters(facts, view, diagnosis);
  if (view.bf16 == Setting::yes) check_bf16_hardware(facts, diagnosis);
  if (diagnosis.has(Check::deepspeed_precision)) return;
  const bool open = view.fp16 == Setting::automatic || view.bf16 == Setting::automatic;
  const char* precision = view.bf16 == Setting::yes ? "bf16" : (view.fp16 == Setting::yes ? "fp16" : "fp32");
  diagnosis.ok(Check::deepspeed_precision,
               open && view.bf16 != Setting::yes && view.fp16 != Setting::yes
                   ? "The precision is left to transformers or accelerate."
                   : std::string("Training is in ") + precision + ".",
               kPrecisionPage);
}

void check_deepspeed_auto(const Facts& facts, Diagnosis& diagnosis) {
  if (!facts.deepspeed || !facts.deepspeed->readable()) return;
  std::vector<AutoValue> found;
  collect_auto(facts.deepspeed->value, "", found);
  const auto filled = static_cast<std::uint64_t>(std::ranges::count(found, true, &AutoValue::filled));
  for (const AutoValue& value : found) {
    if (!value.filled) tell_unfilled(facts, value.path, diagnosis);
  }
  if (filled == 0) return;
  const bool has_python = facts.python.trouble.empty() && !facts.python.path.empty();
  const bool nobody = has_python && facts.packages.find("deepspeed") != nullptr &&
                      facts.packages.find("transformers") == nullptr && facts.packages.find("accelerate") == nullptr;
  diagnosis.add({Check::deepspeed_auto, nobody ? Level::error : Level::ok,
                 counted(filled, "value") + " \"auto\": " +
                     (nobody ? "this Python has neither transformers nor accelerate, which fill them in."
                             : "Trainer or accelerate fills them in."),
                 "deepspeed.initialize on its own fails on them or takes its defaults.", nobody ? "Write values." : "",
                 kTransformersPage});
}

}  // namespace devsan::doctor
