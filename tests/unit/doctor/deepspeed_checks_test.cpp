#include "sample_facts.h"

using namespace devsan::doctor;

namespace {

constexpr char kZero3[] = R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
  "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "cpu"},
                        "stage3_gather_16bit_weights_on_model_save": true}})";

std::vector<Line> run(CheckFunction check, const std::string& json) {
  return run_check(check, with_deepspeed(json));
}

}  // namespace

TEST_CASE("a sound config passes every check") {
  const Facts facts = with_deepspeed(kZero3);
  for (auto* check : {check_deepspeed_file, check_deepspeed_keys, check_deepspeed_batch, check_deepspeed_precision,
                      check_deepspeed_offload, check_deepspeed_options, check_deepspeed_auto}) {
    CHECK(worst(check, facts) == Level::ok);
  }
}

TEST_CASE("without a config nothing is said about one") {
  const Facts facts = sample_facts();
  for (auto* check :
       {check_deepspeed_file, check_deepspeed_keys, check_deepspeed_batch, check_deepspeed_precision,
        check_deepspeed_offload, check_deepspeed_options, check_deepspeed_auto, check_accelerate, check_memory}) {
    CHECK(run_check(check, facts).empty());
  }
}

TEST_CASE("a config that cannot be read is one error") {
  Facts facts = sample_facts();
  facts.deepspeed = parse_json_config("ds.json", "{");
  CHECK(diagnose(facts).count(Level::error) == 1);
}

TEST_CASE("an unknown key is passed over outside, and refused in a section of pydantic's") {
  CHECK(says(run(check_deepspeed_keys, R"({"train_batchsize": 8})"), Level::warning, "Did you mean train_batch_size?"));
  CHECK(
      says(run(check_deepspeed_keys, R"({"zero_optimization": {"stagee": 2}})"), Level::error, "Did you mean stage?"));
  CHECK(says(run(check_deepspeed_keys, R"({"zero_optimization": {"offload_param": {"devise": "cpu"}}})"), Level::error,
             "Did you mean device?"));
  CHECK(says(run(check_deepspeed_keys, R"({"stage3_max_live_parameters": 1})"), Level::warning,
             "It belongs in zero_optimization"));
  CHECK(worst(run(check_deepspeed_keys, R"({"_note": "mine"})")) == Level::ok);
}

TEST_CASE("a newer DeepSpeed may know more keys") {
  Facts facts = with_deepspeed(R"({"zero_optimization": {"stage": 1, "brand_new": true}})");
  CHECK(worst(check_deepspeed_keys, facts) == Level::error);
  facts.packages.add("deepspeed", {"99.0", ""});
  CHECK(worst(check_deepspeed_keys, facts) == Level::warning);
}

TEST_CASE("a key that was taken out is an error for the release that refuses it") {
  Facts facts = with_deepspeed(R"({"elasticity": {}, "zero_optimization": {"mics_shard_size": 8}})");
  CHECK(worst(check_deepspeed_keys, facts) == Level::warning);
  facts.packages.add("deepspeed", {"0.19.8", ""});
  CHECK(says(run_check(check_deepspeed_keys, facts), Level::error, "mics_shard_size"));
  Facts old = with_deepspeed(R"({"elasticity": {}})");
  old.packages.add("deepspeed", {"0.14.0", ""});
  CHECK(worst(check_deepspeed_keys, old) == Level::ok);
}

TEST_CASE("a deprecated key names its successor") {
  CHECK(says(run(check_deepspeed_keys, R"({"zero_optimization": {"stage": 2, "cpu_offload": true}})"), Level::warning,
             "offload_optimizer"));
  CHECK(says(run(check_deepspeed_keys, R"({"zero_optimization": true})"), Level::warning, "deprecated"));
}

TEST_CASE("values are of the type that DeepSpeed takes") {
  for (const char* sound :
       {R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8, "overlap_comm": "true"}})",
        R"({"zero_optimization": {"sub_group_size": "auto", "offload_param": null}})",
        R"({"zero_optimization": {"stage": "3", "reduce_bucket_size": "500000000", "overlap_comm": 1}})",
        R"({"fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 16}})"}) {
    INFO(sound);
    CHECK(worst(run(check_deepspeed_keys, sound)) == Level::ok);
  }
  for (const char* broken :
       {R"({"zero_optimization": {"stage": 4}})", R"({"zero_optimization": {"stage": "three"}})",
        R"({"zero_optimization": {"reduce_bucket_size": "5e8"}})", R"({"zero_optimization": {"overlap_comm": 2}})",
        R"({"zero_optimization": {"contiguous_gradients": null}})",
        R"({"zero_optimization": {"reduce_bucket_size": 0.5}})", R"({"zero_optimization": {"reduce_bucket_size": 0}})",
        R"({"zero_optimization": {"overlap_comm": "maybe"}})", R"({"zero_optimization": {"offload_param": "cpu"}})",
        R"({"zero_optimization": {"offload_optimizer": {"device": "gpu"}}})",
        R"({"zero_optimization": {"offload_optimizer": {"ratio": 1.5}}})", R"({"bf16": true})"}) {
    INFO(broken);
    CHECK(worst(run(check_deepspeed_keys, broken)) == Level::error);
  }
}

TEST_CASE("what DeepSpeed does not convert is to be a number, without quotes") {
  for (
      const char* sound :
      {R"({"train_batch_size": 32, "gradient_clipping": 1, "steps_per_print": 1e9, "gradient_accumulation_steps": null})",
       R"({"train_micro_batch_size_per_gpu": "auto", "wall_clock_breakdown": false, "aio": {"block_size": 1048576}})",
       R"({"flops_profiler": {"enabled": true, "top_modules": 3}, "activation_checkpointing": {"profile": true}})",
       R"({"communication_data_type": "fp16", "tensor_parallel": {"autotp_size": 2}})"}) {
    INFO(sound);
    CHECK(worst(run(check_deepspeed_keys, sound)) == Level::ok);
  }
  for (const char* broken :
       {R"({"train_batch_size": "32"})", R"({"gradient_clipping": "1.0"})", R"({"gradient_clipping": null})",
        R"({"wall_clock_breakdown": "false"})", R"({"aio": {"block_size": "1048576"}})",
        R"({"train_micro_batch_size_per_gpu": 1.5})", R"({"flops_profiler": {"profile_step": [1]}})"}) {
    INFO(broken);
    CHECK(says(run(check_deepspeed_keys, broken), Level::error, "does not convert it"));
  }
}

TEST_CASE("a text is true to DeepSpeed, whatever it says") {
  CHECK(says(run(check_deepspeed_keys, R"({"dump_state": "false"})"), Level::warning, "every text for true"));
  CHECK(worst(run(check_deepspeed_keys, R"({"dump_state": "true", "prescale_gradients": 0})")) == Level::ok);
}

TEST_CASE("a key that has another name now names it") {
  Facts facts = with_deepspeed(R"({"aio": {"thread_count": 8}})");
  CHECK(says(run_check(check_deepspeed_keys, facts), Level::warning, "Write intra_op_parallelism in its place."));
  facts.packages.add("deepspeed", {"0.14.2", ""});
  CHECK(worst(check_deepspeed_keys, facts) == Level::ok);
  CHECK(says(run(check_deepspeed_keys, R"({"curriculum_learning": {}})"), Level::warning,
             "data_efficiency.data_sampling.curriculum_learning"));
  CHECK(says(run(check_deepspeed_keys, R"({"amp": {}})"), Level::warning, "torch_autocast"));
}

TEST_CASE("doubled keys and comments are told") {
  CHECK(says(run(check_deepspeed_file, R"({"a": 1, "a": 2})"), Level::error, "a stands twice"));
  CHECK(says(run(check_deepspeed_file, "{} // x"), Level::warning, "HJSON"));
}

TEST_CASE("train_batch_size is micro batch x accumulation x world size") {
  const std::string all =
      R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2})";
  Facts facts = with_deepspeed(all);
  CHECK(says(run_check(check_deepspeed_batch, facts), Level::ok, "4 processes"));
  facts.plan.world_size = 4;
  CHECK(worst(check_deepspeed_batch, facts) == Level::ok);
  facts.plan.world_size = 8;
  CHECK(says(run_check(check_deepspeed_batch, facts), Level::error, "Set train_batch_size to 64"));
  CHECK(worst(run(
            check_deepspeed_batch,
            R"({"train_batch_size": 30, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2})")) ==
        Level::error);
}

TEST_CASE("of two batch sizes the third must be a whole number") {
  Facts facts = with_deepspeed(R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4})");
  facts.plan.world_size = 8;
  CHECK(worst(check_deepspeed_batch, facts) == Level::ok);
  facts.plan.world_size = 3;
  CHECK(worst(check_deepspeed_batch, facts) == Level::error);
}

TEST_CASE("sequence parallelism shares a batch among ranks, and other parallelism is not judged") {
  Facts facts =
      with_deepspeed(R"({"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1,
                                   "sequence_parallel_size": 2})");
  facts.plan.world_size = 8;
  CHECK(worst(check_deepspeed_batch, facts) == Level::ok);
  facts =
      with_deepspeed(R"({"train_batch_size": 4, "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1,
                             "tensor_parallel": {"autotp_size": 2}})");
  facts.plan.world_size = 8;
  CHECK(worst(check_deepspeed_batch, facts) == Level::ok);
}

TEST_CASE("a batch size is given, and above 0") {
  CHECK(worst(run(check_deepspeed_batch, R"({"gradient_accumulation_steps": 2})")) == Level::error);
  CHECK(worst(run(check_deepspeed_batch, R"({"train_batch_size": 0})")) == Level::error);
  CHECK(run(check_deepspeed_batch, R"({"train_batch_size": "auto", "gradient_accumulation_steps": 3})").empty());
}

TEST_CASE("fp16 and bf16 exclude each other") {
  CHECK(worst(run(check_deepspeed_precision, R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})")) ==
        Level::error);
  CHECK(worst(run(check_deepspeed_precision, R"({"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}})")) ==
        Level::ok);
  CHECK(worst(run(check_deepspeed_precision, R"({"fp16": {"enabled": true}, "bf16": {"enabled": false}})")) ==
        Level::ok);
}

TEST_CASE("bf16 needs a GPU that has it") {
  Facts facts = with_deepspeed(R"({"bf16": {"enabled": true}})");
  CHECK(worst(check_deepspeed_precision, facts) == Level::ok);
  facts.driver.visible = {sample_gpu(70)};
  CHECK(says(run_check(check_deepspeed_precision, facts), Level::warning, "compute capability 7.0"));
}

TEST_CASE("16-bit master weights need ZeRO") {
  CHECK(worst(run(check_deepspeed_precision,
                  R"({"bf16": {"enabled": true, "bf16_master_weights_and_grads": true}})")) == Level::error);
  CHECK(
      worst(run(check_deepspeed_precision,
                R"({"bf16": {"enabled": true, "bf16_optimizer_states": true}, "zero_optimization": {"stage": 2}})")) ==
      Level::error);
}

TEST_CASE("offloading fits its stage") {
  const auto offload = [](const std::string& zero) {
    return run(check_deepspeed_offload, R"({"zero_optimization": )" + zero + "}");
  };
  CHECK(worst(offload(R"({"stage": 2, "offload_param": {"device": "cpu"}})")) == Level::error);
  CHECK(worst(offload(R"({"stage": 0, "offload_optimizer": {"device": "cpu"}})")) == Level::error);
  CHECK(worst(offload(R"({"stage": 2, "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme"}})")) ==
        Level::error);
  CHECK(worst(offload(R"({"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.5}})")) == Level::error);
  CHECK(worst(offload(R"({"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.5}})")) == Level::warning);
  CHECK(
      worst(offload(R"({"stage": 2, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "none"}})")) ==
      Level::ok);
  CHECK(worst(offload(R"({"stage": "auto", "offload_param": {"device": "auto"}})")) == Level::ok);
  CHECK(says(offload(R"({"stage": 3, "offload_param": {"device": "cpu"}})"), Level::warning, "stay on it"));
  CHECK(says(
      offload(
          R"({"stage": 3, "offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "nvme", "nvme_path": "/n"}})"),
      Level::warning, "different devices"));
}

TEST_CASE("pinning is told on WSL2 alone") {
  Facts facts = with_deepspeed(
      R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": true}}})");
  CHECK(worst(check_deepspeed_offload, facts) == Level::ok);
  facts.machine.wsl2 = true;
  CHECK(says(run_check(check_deepspeed_offload, facts), Level::warning, "pin_memory"));
}

TEST_CASE("where a config does not say whether to pin, it is what the installed DeepSpeed takes") {
  const auto [release, expected] =
      GENERATE(table<const char*, Level>({{"0.19.4", Level::ok}, {"0.19.5", Level::warning}}));
  Facts facts = with_deepspeed(R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})");
  facts.machine.wsl2 = true;
  CHECK(worst(check_deepspeed_offload, facts) == Level::ok);
  facts.packages.add("deepspeed", {release, {}});
  CHECK(worst(check_deepspeed_offload, facts) == expected);
  facts.deepspeed = with_deepspeed(R"({"zero_optimization": {"stage": 2, "cpu_offload": true}})").deepspeed;
  CHECK(says(run_check(check_deepspeed_offload, facts), Level::warning, "pins its memory") ==
        (expected == Level::warning));
}

TEST_CASE("an optimizer that ZeRO is not tested with must be allowed") {
  CHECK(worst(run(check_deepspeed_offload, R"({"optimizer": {"type": "SGD"}, "zero_optimization": {"stage": 1}})")) ==
        Level::error);
  CHECK(
      worst(run(
          check_deepspeed_offload,
          R"({"optimizer": {"type": "SGD"}, "zero_allow_untested_optimizer": true, "zero_optimization": {"stage": 1}})")) ==
      Level::ok);
  CHECK(worst(run(check_deepspeed_offload, R"({"optimizer": {"type": "SGD"}})")) == Level::ok);
}

TEST_CASE("options that exclude or need each other are told") {
  const std::pair<const char*, Level> cases[] = {
      {R"({"zero_optimization": {"stage": 3}})", Level::warning},
      {R"({"zero_optimization": {"stage": 3}, "gradient_allreduce_op": "sum"})", Level::error},
      {R"({"zero_optimization": {"stage": 0, "compute_grad_norm": false}})", Level::error},
      {R"({"zero_optimization": {"stage": 2, "compute_grad_norm": false}})", Level::ok},
      {R"({"zero_optimization": {"stage": 2, "compute_grad_norm": false}, "gradient_clipping": 1.0})", Level::error},
      {R"({"zero_optimization": {"stage": 2, "compute_grad_norm": false, "offload_optimizer": {"device": "cpu"}}})",
       Level::error},
      {R"({"zero_optimization": {"stage": 2, "zero_hpz_partition_size": 8}})", Level::warning},
      {R"({"communication_data_type": "float16"})", Level::error},
      {R"({"checkpoint": {"tag_validation": "maybe"}})", Level::error},
      {R"({"checkpoint": {"tag_validation": "Fail"}})", Level::ok},
      {R"({"fp16": {"loss_scale": -1}})", Level::error},
      {R"({"activation_checkpointing": {"contiguous_memory_optimization": true}})", Level::error},
      {R"({"optimizer": {"type": "Adam", "params": {"max_grad_norm": 1.0}}})", Level::error},
  };
  for (const auto& [config, level] : cases) {
    INFO(config);
    CHECK(worst(run(check_deepspeed_options, config)) == level);
  }
}

TEST_CASE("\"auto\" is a value where something fills it in") {
  CHECK(worst(run(check_deepspeed_auto, R"({"train_batch_size": "auto", "optimizer": {"params": {"lr": "auto"}}})")) ==
        Level::ok);
  CHECK(worst(run(check_deepspeed_auto, R"({"optimizer": {"params": {"momentum": "auto"}}})")) == Level::error);
  CHECK(worst(run(check_deepspeed_auto, R"({"steps_per_print": "auto"})")) == Level::warning);
  CHECK(run(check_deepspeed_auto, R"({"pipeline": {"stages": "auto"}})").empty());
  Facts facts = with_deepspeed(R"({"train_batch_size": "auto"})");
  facts.packages.add("deepspeed", {"0.19.8", ""});
  CHECK(says(run_check(check_deepspeed_auto, facts), Level::error, "neither transformers nor accelerate"));
}

TEST_CASE("what to do about an optimizer is what DeepSpeed then accepts") {
  const auto optimizer = [](const std::string& type, const std::string& more = R"("zero_optimization": {"stage": 2})") {
    return run(check_deepspeed_offload, R"({"optimizer": {"type": ")" + type + R"("}, )" + more + "}");
  };
  const std::string allowed = R"("zero_allow_untested_optimizer": true, "zero_optimization": {"stage": 2})";
  for (const char* type : {"Adam", "adamw", "ADAGRAD", "Lion", "Muon"}) CHECK(worst(optimizer(type)) == Level::ok);
  for (const char* type : {"SGD", "RMSprop", "Lamb", "MuSGD"}) {
    CHECK(says(optimizer(type), Level::error, "zero_allow_untested_optimizer"));
    CHECK(worst(optimizer(type, allowed)) == Level::ok);
  }
  for (const auto& [type, meant] : {std::pair("FusedAdam", "\"Adam\""),
                                    {"DeepSpeedCPUAdam", "\"Adam\""},
                                    {"FusedLamb", "\"Lamb\""},
                                    {"AdmW", "\"AdamW\""},
                                    {"sgd", "\"SGD\""},
                                    {"paged_adamw_8bit", "\"AdamW\""},
                                    {"Shampoo", "a class of torch.optim"}}) {
    INFO(type);
    CHECK(says(optimizer(type), Level::error, meant));
    CHECK(says(optimizer(type, allowed), Level::error, "does not know"));
    CHECK_FALSE(says(optimizer(type), Level::error, "zero_allow_untested_optimizer"));
    CHECK(worst(optimizer(type, R"("zero_optimization": {"stage": 0})")) == Level::error);
  }
}

TEST_CASE("an optimizer that an earlier DeepSpeed had is unknown to the newest one") {
  Facts facts = with_deepspeed(R"({"optimizer": {"type": "OneBitAdam"}})");
  facts.packages.add("deepspeed", {"0.14.2", ""});
  CHECK_FALSE(says(run_check(check_deepspeed_offload, facts), Level::error, "does not know"));
  Facts newest = with_deepspeed(R"({"optimizer": {"type": "OneBitAdam"}})");
  newest.packages.add("deepspeed", {"0.19.8", ""});
  CHECK(says(run_check(check_deepspeed_offload, newest), Level::error, "does not know"));
}

TEST_CASE("a sequence-parallel size that does not divide the world size is an error of its own") {
  for (const char* config : {R"({"train_batch_size": 8, "sequence_parallel_size": 4})",
                             R"({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1,
                                 "gradient_accumulation_steps": 1, "sequence_parallel_size": 4})"}) {
    INFO(config);
    Facts facts = with_deepspeed(config);
    facts.plan.world_size = 2;
    const std::vector<Line> lines = run_check(check_deepspeed_batch, facts);
    CHECK(says(lines, Level::error, "4 does not divide the world size 2"));
    CHECK_FALSE(says(lines, Level::error, "Set train_batch_size to 0"));
  }
}

TEST_CASE("batch sizes whose product no number holds are an error") {
  const std::string huge = R"("train_micro_batch_size_per_gpu": 4294967296, "gradient_accumulation_steps": 4294967296)";
  CHECK(says(run(check_deepspeed_batch, R"({"train_batch_size": 1, )" + huge + "}"), Level::error, "any batch"));
  Facts facts = with_deepspeed(R"({"train_batch_size": 1, "gradient_accumulation_steps": 4294967296})");
  facts.plan.world_size = std::uint64_t{1} << 32;
  CHECK(says(run_check(check_deepspeed_batch, facts), Level::error, "any batch"));
}

TEST_CASE("sequence parallelism of accelerate shares a batch among ranks, too") {
  Facts facts = with_deepspeed(
      R"({"train_batch_size": 2, "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1})");
  const std::string sizes = "num_processes: 4\nparallelism_config: {parallelism_config_sp_size: 2}\n";
  CHECK(worst(check_deepspeed_batch, with_accelerate("distributed_type: DEEPSPEED\n" + sizes, facts)) == Level::ok);
  CHECK(worst(check_deepspeed_batch, with_accelerate("distributed_type: MULTI_GPU\n" + sizes, facts)) == Level::error);
}

TEST_CASE("what an older DeepSpeed may take is no error") {
  for (const char* config : {R"({"bf16": {"enabled": true, "auto_cast": false, "loss_scale": 0}})",
                             R"({"compile": {"enabled": true, "backend": "inductor"}})"}) {
    INFO(config);
    Facts facts = with_deepspeed(config);
    CHECK(worst(check_deepspeed_keys, facts) == Level::error);
    facts.packages.add("deepspeed", {"0.15.4", ""});
    CHECK(worst(check_deepspeed_keys, facts) == Level::warning);
  }
}

TEST_CASE("elasticity works out the batch sizes in releases that have it") {
  Facts facts = with_deepspeed(R"({"elasticity": {"enabled": true}})");
  CHECK(run_check(check_deepspeed_batch, facts).empty());
  facts.packages.add("deepspeed", {"0.15.4", ""});
  CHECK(run_check(check_deepspeed_batch, facts).empty());
  Facts newest = with_deepspeed(R"({"elasticity": {"enabled": true}})");
  newest.packages.add("deepspeed", {"0.19.8", ""});
  CHECK(worst(check_deepspeed_batch, newest) == Level::error);
}

TEST_CASE("of many lines of one check the first are kept, and the others counted") {
  std::string json = R"({"zero_optimization": {"stage": 9})";
  for (int k = 0; k < 100; ++k) json += ", \"own" + std::to_string(k) + "\": 1";
  const Diagnosis diagnosis = diagnose(with_deepspeed(json + "}"));
  std::vector<Line> keys;
  std::ranges::copy_if(diagnosis.lines(), std::back_inserter(keys),
                       [](const Line& line) { return line.check == Check::deepspeed_keys; });
  REQUIRE(keys.size() == 21);
  CHECK(keys.back().found == "… and 81 more lines of this kind.");
  CHECK(keys.back().level == Level::error);
}
