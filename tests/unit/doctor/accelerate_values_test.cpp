#include "sample_facts.h"

using namespace devsan::doctor;

namespace {

std::vector<Line> run(const std::string& yaml) {
  return run_check(check_accelerate, with_accelerate(yaml));
}

std::vector<Line> fsdp(const std::string& lines) {
  return run("distributed_type: FSDP\nnum_processes: 2\nfsdp_config:\n" + lines);
}

std::vector<Line> parallel(const std::string& sizes, const std::string& top = "distributed_type: MULTI_GPU\n") {
  return run(top + "num_processes: 2\nparallelism_config: {" + sizes + "}\n");
}

}  // namespace

TEST_CASE("a word where accelerate computes with a number is an error") {
  CHECK(says(run("distributed_type: MULTI_GPU\nnum_processes: eight\n"), Level::error, "num_processes is \"eight\""));
  CHECK(worst(run("distributed_type: MULTI_GPU\nnum_processes: '2'\n")) == Level::ok);  // torchrun reads a text
  CHECK(worst(run("distributed_type: MULTI_GPU\nnum_processes: gpu\n")) == Level::ok);
  CHECK(says(run("distributed_type: MULTI_GPU\nnum_processes: '4'\nnum_machines: 2\nmain_process_ip: h\n"),
             Level::error, "without quotes"));
  CHECK(worst(run("distributed_type: MULTI_GPU\nnum_processes: 2\nnum_machines: '1'\n")) == Level::error);
  CHECK(worst(run("distributed_type: MULTI_GPU\nnum_processes: 2\nmain_process_port: '29500'\n")) == Level::error);
  CHECK(says(run("distributed_type: MULTI_GPU\n"), Level::warning, "no num_processes"));
  CHECK(worst(run("distributed_type: MULTI_GPU\nnum_processes: -1\n")) == Level::error);
}

TEST_CASE("gpu_ids is a text, also for one GPU") {
  CHECK(says(run("distributed_type: 'NO'\ngpu_ids: 0\n"), Level::error, "Write a text in quotes"));
  CHECK(worst(run("distributed_type: 'NO'\ngpu_ids: '0'\n")) == Level::ok);
}

TEST_CASE("the rank of a machine is below their number") {
  const std::string two = "distributed_type: FSDP\nnum_processes: 4\nnum_machines: 2\nmain_process_ip: h\n";
  CHECK(says(run(two + "machine_rank: 2\n"), Level::error, "from 0 to 1"));
  CHECK(worst(run(two + "machine_rank: 1\n")) == Level::ok);
  CHECK(worst(run("distributed_type: FSDP\nnum_processes: 2\nmachine_rank: 1\n")) == Level::warning);
  CHECK(says(run("distributed_type: FSDP\nnum_processes: 4\nnum_machines: 2\n"), Level::warning, "main_process_ip"));
  // pdsh goes by a hostfile.
  CHECK(worst(run("distributed_type: DEEPSPEED\nnum_processes: 4\nnum_machines: 2\nmachine_rank: 2\n")) == Level::ok);
}

TEST_CASE("words of FSDP are those that accelerate knows") {
  CHECK(says(fsdp("  fsdp_sharding_strategy: FULL_SHRAD\n"), Level::error, "Did you mean FULL_SHARD?"));
  CHECK(says(fsdp("  fsdp_auto_wrap_policy: TRANSFORMER_BASED\n"), Level::error, "TRANSFORMER_BASED_WRAP?"));
  CHECK(says(fsdp("  fsdp_state_dict_type: ALL\n"), Level::error, "\"SHARDED_STATE_DICT\""));
  CHECK(says(fsdp("  fsdp_version: 3\n"), Level::error, "one of 1 and 2"));
  CHECK(worst(fsdp("  sharding_strategy: full_shard\n  auto_wrap_policy: no_wrap\n  fsdp_version: '1'\n")) ==
        Level::ok);
  CHECK(worst(fsdp("  fsdp_sharding_strategy: 4\n  fsdp_backward_prefetch: NO_PREFETCH\n")) == Level::ok);
  CHECK(worst(run("distributed_type: MULTI_GPU\nnum_processes: 2\nfsdp_config: {fsdp_version: 3}\n")) ==
        Level::warning);
}

TEST_CASE("a number that no option reads is not judged") {
  CHECK(worst(fsdp("  fsdp_min_num_params: 1e8\n")) == Level::ok);
  CHECK(worst(fsdp("  fsdp_min_num_params: 1e8\n  fsdp_auto_wrap_policy: SIZE_BASED_WRAP\n")) == Level::error);
}

TEST_CASE("weights that only rank 0 loads have to be sent to the others") {
  CHECK(worst(fsdp("  fsdp_cpu_ram_efficient_loading: true\n  fsdp_sync_module_states: true\n")) == Level::ok);
  CHECK(worst(fsdp("  fsdp_cpu_ram_efficient_loading: false\n  fsdp_sync_module_states: false\n")) == Level::ok);
  CHECK(worst(fsdp("  fsdp_cpu_ram_efficient_loading: true\n  fsdp_sync_module_states: false\n")) == Level::error);
  CHECK(says(fsdp("  fsdp_sync_module_states: false\n"), Level::error, "on by default"));
}

TEST_CASE("FSDP 2 has other options than FSDP 1") {
  CHECK(worst(fsdp("  fsdp_version: 2\n  fsdp_reshard_after_forward: true\n")) == Level::ok);
  CHECK(worst(fsdp("  fsdp_version: 2\n  fsdp_reshard_after_forward: FULL_SHARD\n")) == Level::error);
  CHECK(worst(fsdp("  fsdp_version: 2\n  fsdp_state_dict_type: LOCAL_STATE_DICT\n")) == Level::error);
  CHECK(
      says(fsdp("  fsdp_version: 2\n  fsdp_sharding_strategy: HALF\n"), Level::warning, "fsdp_reshard_after_forward"));
  CHECK(worst(fsdp("  fsdp_reshard_after_forward: FULL_SHARD\n")) == Level::ok);  // as `accelerate config` writes it
  CHECK(says(fsdp("  fsdp_reshard_after_forward: NO_SHARD\n"), Level::warning, "Set fsdp_sharding_strategy"));
  const std::string offload = "  fsdp_activation_checkpointing_offload: true\n";
  CHECK(worst(fsdp(offload)) == Level::error);
  CHECK(worst(fsdp(offload + "  fsdp_activation_checkpointing: true\n")) == Level::error);
  CHECK(worst(fsdp(offload + "  fsdp_activation_checkpointing: true\n  fsdp_version: 2\n")) == Level::ok);
}

TEST_CASE("FSDP 2 needs torch 2.6") {
  Facts facts = with_accelerate("distributed_type: FSDP\nnum_processes: 2\nfsdp_config: {fsdp_version: 2}\n");
  facts.packages = {};
  facts.packages.add("torch", {"2.5.1+cu124", ""});
  CHECK(says(run_check(check_accelerate, facts), Level::error, "2.5.1"));
}

TEST_CASE("the sizes of several kinds of parallelism fit each other and the processes") {
  CHECK(worst(parallel("parallelism_config_dp_shard_size: 2")) == Level::ok);
  CHECK(says(parallel("parallelism_config_dp_shard_size: 4"), Level::error, "num_processes is 2"));
  CHECK(says(parallel("dp_shard_size: 2"), Level::warning, "Did you mean parallelism_config_dp_shard_size?"));
  CHECK(worst(parallel("parallelism_config_cp_size: 2, parallelism_config_sp_size: 2")) == Level::error);
  CHECK(worst(parallel("parallelism_config_cp_size: 2, parallelism_config_cp_comm_strategy: ring")) == Level::error);
  CHECK(worst(parallel("parallelism_config_sp_size: 2, parallelism_config_sp_attn_implementation: eager")) ==
        Level::error);
  CHECK(says(parallel("parallelism_config_dp_shard_size: 2", "distributed_type: FSDP\n"), Level::error,
             "Set fsdp_version to 2"));
  CHECK(says(parallel("parallelism_config_tp_size: 2", "distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\n"),
             Level::error, "Lower tp_size"));
  CHECK(worst(parallel("parallelism_config_tp_size: 99999999999999, parallelism_config_cp_size: 99999999999999")) ==
        Level::ok);
}

TEST_CASE("words of dynamo, fp8 and Megatron-LM are those that accelerate knows") {
  const std::string gpus = "distributed_type: MULTI_GPU\nnum_processes: 2\n";
  CHECK(says(run(gpus + "dynamo_config: {dynamo_backend: INDUCTR}\n"), Level::error, "Did you mean INDUCTOR?"));
  CHECK(worst(run(gpus + "dynamo_backend: no\n")) == Level::error);  // false to YAML
  CHECK(worst(run(gpus + "dynamo_config: {backend: inductor, mode: brand-new}\n")) == Level::warning);
  CHECK(worst(run(gpus + "fp8_config: {backend: TX}\n")) == Level::ok);  // which nobody reads without fp8
  CHECK(worst(run(gpus + "mixed_precision: fp8\nfp8_config: {backend: TX}\n")) == Level::error);
  CHECK(worst(run(gpus + "mixed_precision: fp8\nfp8_config: {backend: AO, margin: x}\n")) == Level::ok);
  CHECK(worst(run("distributed_type: MEGATRON_LM\nnum_processes: 2\nmegatron_lm_config:\n"
                  "  megatron_lm_tp_degree: two\n")) == Level::error);
}
