#include "doctor/python/torch_build.h"
#include "sample_facts.h"

using namespace devsan::doctor;

TEST_CASE("a build for the CPU is an error only where there is a GPU") {
  Facts facts = sample_facts();
  CHECK(worst(check_torch, facts) == Level::ok);
  facts.torch->cuda.clear();
  CHECK(says(run_check(check_torch, facts), Level::error, "without CUDA"));
  facts.driver = {};
  facts.machine.device_files = 0;
  CHECK(worst(check_torch, facts) == Level::ok);
}

TEST_CASE("no torch, and no Python, are told") {
  Facts facts = sample_facts();
  facts.torch.reset();
  CHECK(worst(check_torch, facts) == Level::warning);
  facts.python.trouble = "There is no program py.";
  CHECK(worst(check_torch, facts) == Level::error);
}

TEST_CASE("the driver must run torch's major version of CUDA") {
  Facts facts = sample_facts();
  CHECK(worst(check_torch_driver, facts) == Level::ok);
  facts.torch->cuda = "12.8";  // minor versions are compatible
  CHECK(worst(check_torch_driver, facts) == Level::ok);
  facts.torch->cuda = "13.0";
  CHECK(says(run_check(check_torch_driver, facts), Level::error, "580.65.06"));
}

TEST_CASE("code runs on its own capability and on later minor ones") {
  const std::pair<int, bool> cases[] = {{50, true}, {52, true}, {60, false}, {75, false}, {80, true},
                                        {86, true}, {89, true}, {90, true},  {100, false}};
  for (const auto& [capability, runs] : cases) {
    INFO(capability);
    Facts facts = sample_facts();
    facts.driver.visible = {sample_gpu(capability)};
    CHECK((worst(check_arch_list, facts) == Level::ok) == runs);
  }
}

TEST_CASE("what the driver compiles runs on every later capability") {
  Facts facts = sample_facts();
  facts.driver.visible = {sample_gpu(120)};
  facts.torch->architectures = {"sm_80", "compute_90"};
  CHECK(worst(check_arch_list, facts) == Level::ok);
  facts.torch->architectures = {"sm_80", "sm_90a"};
  CHECK(worst(check_arch_list, facts) == Level::error);
}

TEST_CASE("the list of architectures is found among the texts of a library") {
  const std::string library = std::string(
      "\x7f"
      "ELF\0sm_90\0sm_50 sm_80 sm_90 compute_90\0sm_x y\0sm_70 or later\0",
      61);
  CHECK(architectures_in(library) == std::vector<std::string>{"sm_50", "sm_80", "sm_90", "compute_90"});
  CHECK(architectures_in("").empty());
}

TEST_CASE("NVIDIA's packages are those that torch asks for") {
  Facts facts = sample_facts();
  facts.torch->requirements = {{"nvidia-cublas-cu12", "12.4.5.8"}, {"nvidia-nccl-cu12", "2.21.5"}};
  facts.packages.add("nvidia_cublas_cu12", {"12.4.5.8", ""});
  facts.packages.add("nvidia_nccl_cu12", {"2.26.2", ""});
  CHECK(worst(check_cuda_libraries, facts) == Level::ok);
  CHECK(says(run_check(check_nccl, facts), Level::warning, "nvidia-nccl-cu12==2.21.5"));
  facts.torch->requirements["nvidia-cufft-cu12"] = "11.2.1.3";
  CHECK(says(run_check(check_cuda_libraries, facts), Level::error, "nvidia-cufft-cu12 is missing"));
}

TEST_CASE("NCCL's ways between GPUs are not switched off") {
  Facts facts = sample_facts();
  facts.environment = Environment::of({{"NCCL_P2P_DISABLE", "1"}, {"NCCL_IB_DISABLE", "0"}});
  const auto lines = run_check(check_nccl, facts);
  CHECK(says(lines, Level::warning, "NCCL_P2P_DISABLE"));
  CHECK(lines.size() == 1);
}

TEST_CASE("DeepSpeed needs a CUDA toolkit of torch's major version") {
  Facts facts = sample_facts();
  CHECK(run_check(check_toolkit, facts).empty());
  facts.packages.add("deepspeed", {"0.19.8", ""});
  CHECK(worst(check_toolkit, facts) == Level::warning);
  facts.machine.toolkits = {"12.1"};
  CHECK(worst(check_toolkit, facts) == Level::ok);
  facts.machine.toolkits = {"11.8"};
  CHECK(says(run_check(check_toolkit, facts), Level::error, "11.8"));
  facts.environment = Environment::of({{"CUDA_HOME", "/opt/cuda"}});
  CHECK(says(run_check(check_toolkit, facts), Level::ok, "/opt/cuda"));
}

TEST_CASE("small limits are told") {
  Facts facts = sample_facts();
  CHECK(worst(check_limits, facts) == Level::ok);
  facts.machine.shared_memory = std::uint64_t{64} << 20;
  CHECK(says(run_check(check_limits, facts), Level::error, "--shm-size"));  // two GPUs
  facts.driver.visible.pop_back();
  CHECK(says(run_check(check_limits, facts), Level::warning, "--shm-size"));
  facts = sample_facts();
  facts.machine.locked_memory = Limit{false, 8 << 20};
  CHECK(says(run_check(check_limits, facts), Level::warning, "memlock=-1"));
  facts = sample_facts();
  facts.machine.open_files = Limit{false, 256};
  CHECK(says(run_check(check_limits, facts), Level::warning, "ulimit -n"));
  facts = sample_facts();
  facts.machine.group_limit = std::uint64_t{16} << 30;
  facts.machine.group_left = std::uint64_t{1} << 30;
  CHECK(says(run_check(check_limits, facts), Level::warning, "16.0 GiB"));
}
