#include "sample_facts.h"

using namespace devsan::doctor;

namespace {

// As `accelerate config` writes it.
constexpr char kSound[] =
    "compute_environment: LOCAL_MACHINE\ndebug: false\ndistributed_type: MULTI_GPU\ndowncast_bf16: 'no'\n"
    "enable_cpu_affinity: false\ngpu_ids: all\nmachine_rank: 0\nmain_training_function: main\nmixed_precision: bf16\n"
    "num_machines: 1\nnum_processes: 2\nrdzv_backend: static\nsame_network: true\ntpu_env: []\ntpu_use_cluster: false\n"
    "tpu_use_sudo: false\nuse_cpu: false\n";

std::vector<Line> run(const std::string& yaml) {
  return run_check(check_accelerate, with_accelerate(yaml));
}

std::vector<Line> deepspeed(const std::string& lines, const std::string& more = "") {
  return run("distributed_type: DEEPSPEED\nnum_processes: 2\n" + more + "deepspeed_config:\n" + lines);
}

}  // namespace

TEST_CASE("a config that accelerate wrote passes") {
  CHECK(worst(run(kSound)) == Level::ok);
  CHECK(worst(deepspeed("  zero_stage: 2\n  offload_optimizer_device: none\n  offload_param_device: none\n")) ==
        Level::ok);
}

TEST_CASE("accelerate stops at an unknown key, and passes over one of a section") {
  CHECK(says(run(std::string(kSound) + "num_procceses: 2\n"), Level::error, "Did you mean num_processes?"));
  CHECK(says(deepspeed("  zero_stag: 2\n"), Level::warning, "Did you mean zero_stage?"));
}

TEST_CASE("sections of FSDP may leave the prefix out") {
  CHECK(worst(run(
            "distributed_type: FSDP\nnum_processes: 2\nfsdp_config:\n  fsdp_version: 2\n  offload_params: true\n")) ==
        Level::ok);
}

TEST_CASE("distributed_type is one of accelerate's words") {
  CHECK(says(run("num_processes: 1\n"), Level::error, "no distributed_type"));
  CHECK(says(run("distributed_type: MULTI_GPUS\n"), Level::error, "Did you mean MULTI_GPU?"));
  CHECK(worst(run("distributed_type: NO\n")) == Level::ok);  // false to YAML, and it works
  CHECK(says(run("distributed_type: MULTI_GPU\ndeepspeed_config: {zero_stage: 2}\n"), Level::warning,
             "passes the section over"));
}

TEST_CASE("mixed_precision is a word in quotes where YAML would make it false") {
  CHECK(says(run("distributed_type: 'NO'\nmixed_precision: no\n"), Level::error, "Write 'no'"));
  CHECK(worst(run("distributed_type: 'NO'\nmixed_precision: 'no'\n")) == Level::ok);
  CHECK(worst(run("distributed_type: 'NO'\nmixed_precision: fp32\n")) == Level::error);
}

TEST_CASE("processes fit machines and GPUs") {
  CHECK(worst(run("distributed_type: MULTI_GPU\nnum_processes: 1\n")) == Level::error);
  CHECK(says(run("distributed_type: MULTI_GPU\nnum_processes: 8\n"), Level::error, "2 visible GPUs"));
  CHECK(worst(run("distributed_type: MULTI_GPU\nnum_processes: 4\nnum_machines: 2\nmain_process_ip: h\n")) ==
        Level::ok);
  CHECK(worst(run("distributed_type: MULTI_GPU\nnum_processes: 5\nnum_machines: 2\n")) == Level::error);
}

TEST_CASE("gpu_ids and CUDA_VISIBLE_DEVICES say the same") {
  Facts facts = with_accelerate("distributed_type: MULTI_GPU\nnum_processes: 2\ngpu_ids: 0,1\n");
  facts.environment = Environment::of({{"CUDA_VISIBLE_DEVICES", "0,1"}});
  CHECK(worst(check_accelerate, facts) == Level::ok);
  facts.environment = Environment::of({{"CUDA_VISIBLE_DEVICES", "1,0"}});
  CHECK(worst(check_accelerate, facts) == Level::warning);
  CHECK(worst(run("distributed_type: MULTI_GPU\nnum_processes: 2\ngpu_ids: '0'\n")) == Level::error);
}

TEST_CASE("with a DeepSpeed config of its own accelerate refuses what that one should say") {
  const std::string file = "  deepspeed_config_file: ds.json\n  zero3_init_flag: true\n";
  CHECK(says(deepspeed(file), Level::warning, "ds.json is not there"));
  Facts found = with_accelerate("distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n" + file);
  found.deepspeed = parse_json_config("ds.json", R"({"zero_optimization": {"stage": 2}})");
  CHECK(worst(check_accelerate, found) == Level::ok);
  found.deepspeed = parse_json_config("ds.json", "{}");
  CHECK(says(run_check(check_accelerate, found), Level::error, "ds.json has no zero_optimization"));
  CHECK(says(deepspeed(file + "  zero_stage: 3\n"), Level::error, "zero_stage"));
  CHECK(says(deepspeed(file, "mixed_precision: bf16\n"), Level::error, "mixed_precision"));
}

TEST_CASE("accelerate's own keys are held to what DeepSpeed makes of them") {
  const auto judged = [](CheckFunction check, const std::string& lines) {
    return run_check(check,
                     with_accelerate("distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n" + lines));
  };
  CHECK(says(judged(check_deepspeed_offload, "  zero_stage: 2\n  offload_param_device: cpu\n"), Level::error,
             "Set zero_stage: 3, or take offload_param_device out."));
  CHECK(says(judged(check_deepspeed_offload, "  offload_param_device: cpu\n"), Level::error, "ZeRO is at stage 2"));
  CHECK(says(judged(check_deepspeed_offload, "  zero_stage: 2\n  offload_optimizer_device: nvme\n"), Level::error,
             "Set zero_stage: 3, or offload_optimizer_device: cpu."));
  CHECK(worst(judged(check_deepspeed_offload, "  zero_stage: 0\n  offload_optimizer_device: cpu\n")) == Level::error);
  CHECK(worst(judged(check_deepspeed_offload,
                     "  zero_stage: 3\n  offload_param_device: cpu\n  offload_optimizer_device: none\n")) ==
        Level::warning);
  CHECK(worst(judged(check_deepspeed_offload,
                     "  zero_stage: 3\n  offload_param_device: cpu\n  offload_optimizer_device: cpu\n")) == Level::ok);
  CHECK(says(judged(check_deepspeed_nvme,
                    "  zero_stage: 3\n  offload_optimizer_device: nvme\n  offload_optimizer_nvme_path: none\n"),
             Level::error, "Add offload_optimizer_nvme_path: "));
}

TEST_CASE("the stage that accelerate is given is one") {
  CHECK(worst(deepspeed("  zero_stage: 5\n")) == Level::error);
  CHECK(worst(deepspeed("  zero_stage: 2\n  zero3_init_flag: true\n")) == Level::warning);
}

TEST_CASE("the two configs do not contradict each other") {
  const std::string zero3 =
      R"({"fp16": {"enabled": true}, "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}})";
  const auto both = [&](const std::string& yaml) {
    return run_check(check_configs_agree, with_accelerate(yaml, with_deepspeed(zero3)));
  };
  CHECK(worst(both("mixed_precision: fp16\n")) == Level::ok);
  CHECK(worst(both("mixed_precision: bf16\n")) == Level::error);
  CHECK(says(both("deepspeed_config: {zero_stage: 2}\n"), Level::warning, "zero_stage is 2"));
  CHECK(says(both("deepspeed_config: {offload_param_device: none}\n"), Level::warning, "none for accelerate, cpu"));
}

TEST_CASE("the number of processes and of GPUs on a node come from the plan, the config or the machine") {
  Facts facts = with_accelerate("num_processes: 16\nnum_machines: 4\n");
  CHECK(facts.world_size() == 16u);
  CHECK(facts.gpus_per_node() == 4u);
  facts.plan.world_size = 8;
  CHECK(facts.world_size() == 8u);
  Facts machine = sample_facts();
  CHECK_FALSE(machine.world_size());
  CHECK(machine.gpus_per_node() == 2u);
  machine.plan.world_size = 1;
  CHECK(machine.gpus_per_node() == 1u);
}

TEST_CASE("without a DeepSpeed config the settings are those of accelerate's") {
  Facts facts = with_accelerate(
      "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 8\n"
      "deepspeed_config: {zero_stage: 3, offload_optimizer_device: cpu, offload_param_device: none}\n");
  facts.packages.add("deepspeed", {"0.14.2", ""});
  CHECK(worst(check_known_bugs, facts) == Level::error);
  facts.plan.params = 100'000'000'000;
  CHECK(says(run_check(check_memory, facts), Level::error, "host memory"));
  CHECK_FALSE(with_accelerate("distributed_type: MULTI_GPU\n").deepspeed_settings());
  CHECK_FALSE(with_accelerate("distributed_type: DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: x}\n")
                  .deepspeed_settings());
}

TEST_CASE("keys and types of an earlier accelerate are right for that one, and name what took their place") {
  const std::string earlier =
      "distributed_type: TPU\nnum_processes: 1\nipex_config: {ipex: true}\ntp_config: {tp_size: 2}\n"
      "fsdp_config: {fsdp_backward_prefetch_policy: BACKWARD_PRE}\n";
  Facts facts = with_accelerate(earlier);
  const std::vector<Line> newest = run_check(check_accelerate, facts);
  CHECK(says(newest, Level::error, "ipex_config is a key of earlier releases"));
  CHECK(says(newest, Level::error, "Write parallelism_config in its place."));
  CHECK(says(newest, Level::error, "Write XLA in its place."));
  CHECK(says(newest, Level::warning, "Write fsdp_backward_prefetch in its place."));
  facts.packages.add("accelerate", {"0.30.0", ""});
  const std::vector<Line> old = run_check(check_accelerate, facts);
  CHECK_FALSE(says(old, Level::warning, "in its place"));
  CHECK(worst(old) < Level::error);
}

TEST_CASE("what an accelerate of another release may know is a warning") {
  for (const char* release : {"0.30.0", "99.0"}) {
    Facts facts = with_accelerate("distributed_type: MULTI_QPU\nnum_processes: 2\nbrand_new: 1\n");
    CHECK(says(run_check(check_accelerate, facts), Level::error, "brand_new"));
    facts.packages.add("accelerate", {release, ""});
    const std::vector<Line> lines = run_check(check_accelerate, facts);
    CHECK(says(lines, Level::warning, "brand_new"));
    CHECK(says(lines, Level::warning, "MULTI_QPU"));
    CHECK(worst(lines) == Level::warning);
  }
}

TEST_CASE("a precision of null is none beside a DeepSpeed config") {
  Facts facts = with_accelerate(
      "distributed_type: DEEPSPEED\nnum_processes: 2\nmixed_precision: null\n"
      "deepspeed_config: {deepspeed_config_file: ds.json}\n");
  facts.deepspeed = parse_json_config("ds.json", R"({"zero_optimization": {"stage": 2}})");
  CHECK(worst(check_accelerate, facts) == Level::ok);
}
