// A config of DeepSpeed, and the same bytes as one of accelerate, through all checks of `devsan doctor`.
#include <nlohmann/json.hpp>

#include "doctor/facts.h"
#include "doctor/render_json.h"
#include "target.h"

namespace {

using namespace devsan::doctor;

void check(Facts facts, Document& document) {
  devsan::fuzz::require(document.readable() == document.value.is_object(), "a config is an object, or has an error");
  const Diagnosis diagnosis = diagnose(facts);
  devsan::fuzz::require(nlohmann::json::accept(render_json(facts, diagnosis, "1")), "a diagnosis is JSON");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Facts deepspeed;
  deepspeed.plan.params = 7'000'000'000;
  deepspeed.deepspeed = parse_json_config("ds.json", text);
  check(deepspeed, *deepspeed.deepspeed);
  Facts accelerate;
  accelerate.deepspeed = parse_json_config("ds.json", R"({"zero_optimization": {"stage": 3}, "train_batch_size": 8})");
  accelerate.accelerate = parse_yaml_config("accelerate.yaml", text);
  check(accelerate, *accelerate.accelerate);
  return 0;
}
