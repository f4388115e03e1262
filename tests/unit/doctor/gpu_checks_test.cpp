#include "sample_facts.h"

using namespace devsan::doctor;

TEST_CASE("a driver that works is told with its GPUs") {
  const auto lines = run_check(check_driver, sample_facts());
  CHECK(worst(lines) == Level::ok);
  CHECK(says(lines, Level::ok, "2 GPUs (2 x NVIDIA H100)"));
}

TEST_CASE("no driver is a warning without a GPU, and an error with one") {
  Facts facts;
  facts.driver.cuda_load_error = "libcuda.so.1: cannot open shared object file";
  CHECK(worst(check_driver, facts) == Level::warning);
  facts.machine.device_files = 1;
  CHECK(says(run_check(check_driver, facts), Level::error, "cannot open shared object file"));
  facts.machine.container = true;
  CHECK(says(run_check(check_driver, facts), Level::error, "--gpus all"));
}

TEST_CASE("a driver that crashed is an error") {
  Facts facts = sample_facts();
  facts.driver = {};
  facts.driver.trouble = "ends its process by signal 11 (Segmentation fault)";
  CHECK(says(run_check(check_driver, facts), Level::error, "signal 11"));
}

TEST_CASE("the driver's errors have their names and cures") {
  Facts facts = sample_facts();
  facts.driver.init_status = 803;
  CHECK(says(run_check(check_driver, facts), Level::error, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"));
  facts.driver.init_status = 34;
  CHECK(says(run_check(check_driver, facts), Level::error, "stubs"));
  facts.driver.init_status = 12345;
  CHECK(says(run_check(check_driver, facts), Level::error, "error 12345"));
}

TEST_CASE("GPUs that CUDA_VISIBLE_DEVICES hides are no error of the driver") {
  Facts facts = sample_facts();
  facts.driver.init_status = 100;
  CHECK(worst(check_driver, facts) == Level::error);
  facts.environment = Environment::of({{"CUDA_VISIBLE_DEVICES", ""}});
  CHECK(worst(check_driver, facts) == Level::warning);
}

TEST_CASE("libraries and kernel module of the driver are of one version") {
  Facts facts = sample_facts();
  facts.machine.module_version = "550.54.14";
  CHECK(worst(check_driver, facts) == Level::ok);
  facts.machine.module_version = "535.104.05";
  CHECK(says(run_check(check_driver, facts), Level::error, "535.104.05"));
}

TEST_CASE("WSL2 needs /dev/dxg and the driver of Windows") {
  Facts facts = sample_facts();
  CHECK(run_check(check_wsl, facts).empty());
  facts.machine.wsl2 = true;
  facts.machine.dxg = true;
  facts.driver.cuda_path = "/usr/lib/wsl/lib/libcuda.so.1";
  CHECK(worst(check_wsl, facts) == Level::warning);
  CHECK(says(run_check(check_wsl, facts), Level::warning, ".wslconfig"));
  facts.driver.cuda_path = "/usr/lib/x86_64-linux-gnu/libcuda.so.1";
  CHECK(says(run_check(check_wsl, facts), Level::error, "hides it"));
  facts.driver.cuda_path = "/usr/lib/wsl/lib/libcuda.so.1";
  facts.machine.dxg = false;
  CHECK(says(run_check(check_wsl, facts), Level::error, "/dev/dxg"));
}

TEST_CASE("CUDA_VISIBLE_DEVICES is judged by the GPUs of the machine") {
  Facts facts = sample_facts();
  CHECK(worst(check_visible_devices, facts) == Level::ok);
  facts.environment = Environment::of({{"CUDA_VISIBLE_DEVICES", "1,0"}});
  CHECK(worst(check_visible_devices, facts) == Level::ok);
  facts.environment = Environment::of({{"CUDA_VISIBLE_DEVICES", "0,5"}});
  CHECK(says(run_check(check_visible_devices, facts), Level::error, "of 2 entries it takes 1"));
  facts.environment = Environment::of({{"CUDA_VISIBLE_DEVICES", "0,0"}});
  CHECK(says(run_check(check_visible_devices, facts), Level::error, "twice"));
  facts.environment = Environment::of({{"CUDA_VISIBLE_DEVICES", "-1"}});
  CHECK(worst(check_visible_devices, facts) == Level::warning);
}

TEST_CASE("numbers of GPUs of several models depend on the order of devices") {
  Facts facts = sample_facts();
  facts.driver.all[1].name = "NVIDIA T4";
  facts.environment = Environment::of({{"CUDA_VISIBLE_DEVICES", "1"}});
  CHECK(says(run_check(check_visible_devices, facts), Level::warning, "PCI_BUS_ID"));
  facts.environment = Environment::of({{"CUDA_VISIBLE_DEVICES", "1"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}});
  CHECK(worst(check_visible_devices, facts) == Level::ok);
  facts.environment = Environment::of({{"CUDA_VISIBLE_DEVICES", "GPU-2"}});
  CHECK(worst(check_visible_devices, facts) == Level::ok);
}

TEST_CASE("MIG is a warning for one process, and an error for several") {
  Facts facts = sample_facts();
  CHECK(run_check(check_mig, facts).empty());
  facts.driver.all[0].mig = true;
  CHECK(says(run_check(check_mig, facts), Level::error, "without instances"));
  facts.driver.all[0].instances = {"MIG-1", "MIG-2"};
  CHECK(worst(check_mig, facts) == Level::warning);
  facts.plan.world_size = 2;
  CHECK(worst(check_mig, facts) == Level::error);
}

TEST_CASE("a GPU in MIG mode that is not visible is no trouble") {
  Facts facts = sample_facts();
  facts.driver.all[0].mig = true;
  facts.driver.all[0].instances = {"MIG-1"};
  facts.driver.visible = {facts.driver.all[1]};
  facts.plan.world_size = 2;
  CHECK(worst(check_mig, facts) == Level::ok);
  facts.driver.visible[0].uuid = "GPU-of-an-instance";
  CHECK(worst(check_mig, facts) == Level::error);
}
