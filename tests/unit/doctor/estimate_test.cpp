#include "doctor/memory/estimate.h"

#include "sample_facts.h"

using namespace devsan::doctor;

namespace {

constexpr double kBillion = 1e9;

EstimateInput zero(int stage, std::uint64_t world = 8) {
  EstimateInput input;
  input.params = 1'000'000'000;
  input.world_size = world;
  input.ranks_per_node = world;
  input.stage = stage;
  return input;
}

}  // namespace

TEST_CASE("each stage divides more of a parameter's 16 bytes") {
  CHECK(estimate_memory(zero(0)).device == Approx(16 * kBillion));
  CHECK(estimate_memory(zero(1)).device == Approx((2 + 2 + 12.0 / 8) * kBillion));
  CHECK(estimate_memory(zero(2)).device == Approx((2 + 2.0 / 8 + 12.0 / 8) * kBillion));
  CHECK(estimate_memory(zero(3)).device == Approx(16.0 / 8 * kBillion));
  CHECK(estimate_memory(zero(3)).host == 0);
}

TEST_CASE("offloaded optimizer states take 16 bytes of the host, and parameters 2 more") {
  EstimateInput input = zero(3);
  input.offloaded_states = 1;
  CHECK(estimate_memory(input).host_of_node == Approx(16 * kBillion));
  CHECK(estimate_memory(input).device == Approx(2.0 / 8 * kBillion));
  input.params_on_host = true;
  const Estimate both = estimate_memory(input);
  CHECK(both.host_of_node == Approx(18 * kBillion));
  CHECK(both.device == 0);
  CHECK(both.pinned_of_node == 0);
}

TEST_CASE("two nodes share what one would hold") {
  EstimateInput input = zero(3, 16);
  input.ranks_per_node = 8;
  input.offloaded_states = 1;
  CHECK(estimate_memory(input).host_of_node == Approx(8 * kBillion));
}

TEST_CASE("a ratio leaves a part of the states on the GPU") {
  EstimateInput input = zero(3);
  input.offloaded_states = 0.25;
  const Estimate estimate = estimate_memory(input);
  CHECK(estimate.host_of_node == Approx(4 * kBillion));
  CHECK(estimate.device == Approx((2 + 0.75 * 12) / 8 * kBillion));
}

TEST_CASE("on NVMe only the gradients stay in host memory") {
  EstimateInput input = zero(3);
  input.offloaded_states = 1;
  input.states_on_nvme = true;
  CHECK(estimate_memory(input).host_of_node == Approx(4 * kBillion));
}

TEST_CASE("what passes through host memory to NVMe is in it, and locked") {
  EstimateInput input = zero(3);
  input.params_on_nvme = true;
  input.buffers = {kBillion, 2 * kBillion};
  CHECK(estimate_memory(input).host == Approx(kBillion));
  input.offloaded_states = 1;
  input.states_on_nvme = true;
  const Estimate estimate = estimate_memory(input);
  CHECK(estimate.host == Approx(3.5 * kBillion));
  CHECK(estimate.pinned_of_node == Approx(8 * 3 * kBillion));
}

TEST_CASE("parameters stay in memory up to max_in_cpu") {
  EstimateInput input = zero(3);
  input.params_on_nvme = true;
  input.most_in_memory = 1'000'000;
  CHECK(estimate_memory(input).host == Approx(2e6));
  input.most_in_memory = 1'000'000'000;
  CHECK(estimate_memory(input).host == Approx(2 * kBillion / 8));
}

TEST_CASE("what is pinned is what pin_memory names") {
  EstimateInput input = zero(3);
  input.offloaded_states = 1;
  input.params_on_host = true;
  input.pin_params = true;
  CHECK(estimate_memory(input).pinned_of_node == Approx(2 * kBillion));
  input.pin_states = true;
  CHECK(estimate_memory(input).pinned_of_node == Approx(18 * kBillion));
}

TEST_CASE("the steps show the arithmetic") {
  EstimateInput input = zero(3);
  input.offloaded_states = 1;
  const std::vector<std::string> steps = estimate_memory(input).host_steps;
  REQUIRE(steps.size() == 6);
  CHECK(steps[0] == "fp32 gradients: 1.0 billion x 4 bytes / 8 ranks = 476.8 MiB");
  CHECK(steps[3] == "each rank: 1.9 GiB");
  CHECK(steps[4] == "all ranks of a node: 8 x 1.9 GiB = 14.9 GiB");
  CHECK(steps[5] == "with buffers, as DeepSpeed allows for them: x 1.5 = 22.4 GiB");
}

TEST_CASE("bytes follow precision and optimizer") {
  DeepSpeedView view;
  CHECK(state_bytes(view).weights == 4);
  CHECK(state_bytes(view).master == 0);
  view.optimizer.device = "cpu";
  CHECK(state_bytes(view).master == 4);
  view.bf16 = Setting::yes;
  CHECK(state_bytes(view).weights == 2);
  CHECK(state_bytes(view).moments == 8);
  view.optimizer_type = "lion";
  CHECK(state_bytes(view).moments == 4);
}

TEST_CASE("memory that does not suffice is an error, and a tight one a warning") {
  Facts facts = with_deepspeed(R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 3,
      "offload_optimizer": {"device": "cpu", "pin_memory": true}, "offload_param": {"device": "cpu", "pin_memory": true}}})");
  CHECK(says(run_check(check_memory, facts), Level::ok, "--params"));
  facts.plan.world_size = 2;
  facts.plan.params = 7'000'000'000;  // 117 GiB of 400
  CHECK(worst(check_memory, facts) == Level::ok);
  facts.plan.params = 20'000'000'000;  // 335 GiB
  CHECK(says(run_check(check_memory, facts), Level::warning, "with DeepSpeed's buffers"));
  CHECK(says(run_check(check_memory, facts), Level::warning, "would be pinned"));
  facts.plan.params = 30'000'000'000;
  CHECK(says(run_check(check_memory, facts), Level::error, "502.9 GiB of host memory"));
}

TEST_CASE("states that no GPU holds are an error") {
  Facts facts = with_deepspeed(R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 2}})");
  facts.plan = {7'000'000'000, 2, 2};  // 13 + 6.5 + 39.1 GiB of 80
  CHECK(worst(check_memory, facts) == Level::ok);
  facts.plan.params = 13'000'000'000;
  CHECK(says(run_check(check_memory, facts), Level::error, "runs out of GPU memory"));
}

TEST_CASE("ZeRO++ keeps a second copy of the weights in each group") {
  EstimateInput input = zero(3, 64);
  input.secondary_ranks = 8;
  CHECK(estimate_memory(input).device == Approx((16.0 / 64 + 2.0 / 8) * kBillion));
  input.params_on_host = true;
  input.ranks_per_node = 8;
  CHECK(estimate_memory(input).host_of_node == Approx((2.0 / 64 + 2.0 / 8) * 8 * kBillion));
  CHECK(view_of(Json::parse(R"({"zero_optimization": {"zero_hpz_partition_size": 8}})")).secondary_ranks == 8);
}

TEST_CASE("MiCS divides states among the ranks of a group") {
  EstimateInput input = zero(3, 64);
  input.shard_ranks = 8;
  CHECK(estimate_memory(input).device == Approx(16.0 / 8 * kBillion));
  CHECK(view_of(Json::parse(R"({"zero_optimization": {"mics_shard_size": 8}})")).shard_ranks == 8);
}

TEST_CASE("masters and moments may be bf16") {
  DeepSpeedView view = view_of(Json::parse(
      R"({"bf16": {"enabled": true, "bf16_master_weights_and_grads": true}, "zero_optimization": {"stage": 2}})"));
  CHECK(state_bytes(view).master == 2);
  CHECK(state_bytes(view).moments == 8);
  view.stage = 3;
  CHECK(state_bytes(view).master == 0);
  view.bf16_states = true;
  CHECK(state_bytes(view).moments == 4);
  view.optimizer.device = "cpu";
  CHECK(state_bytes(view).master == 2);
  CHECK(state_bytes(view).offloaded_gradients == 2);
}
