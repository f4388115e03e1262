// The driver, WSL2, and GPUs in MIG mode.
#include <algorithm>

#include "doctor/checks/checks.h"
#include "doctor/text.h"

namespace devsan::doctor {
namespace {

constexpr char kInstallGuide[] = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/";
constexpr char kDriverApi[] = "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html";
constexpr char kWslGuide[] = "https://docs.nvidia.com/cuda/wsl-user-guide/index.html";
constexpr char kWslConfig[] = "https://learn.microsoft.com/en-us/windows/wsl/wsl-config";
constexpr char kMigGuide[] = "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/";
constexpr char kContainerGuide[] =
    "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html";

bool has_gpu_hardware(const Facts& facts) {
  return facts.machine.device_files > 0 || facts.machine.dxg || !facts.machine.module_version.empty() ||
         !facts.driver.all.empty();
}

// The GPUs by name: "2 GPUs (2 x NVIDIA H100)".
std::string gpus_text(const std::vector<Gpu>& gpus) {
  std::vector<std::string> names;
  for (const Gpu& gpu : gpus) {
    if (std::ranges::find(names, gpu.name) == names.end()) names.push_back(gpu.name);
  }
  std::vector<std::string> parts;
  for (const std::string& name : names) {
    parts.push_back(std::to_string(std::ranges::count(gpus, name, &Gpu::name)) + " x " + name);
  }
  return counted(gpus.size(), "GPU") + (parts.empty() ? "" : " (" + listed(parts) + ")");
}

void tell_missing_driver(const Facts& facts, Diagnosis& diagnosis) {
  if (!has_gpu_hardware(facts)) {
    diagnosis.add(
        {Check::driver, Level::warning, "There is no NVIDIA driver here: libcuda.so.1 is not found.",
         "Torch runs on the CPU alone.",
         "On a machine with GPUs install the driver. Without one, `devsan run --sim N -- CMD` simulates them.",
         kInstallGuide});
    return;
  }
  const bool inside = facts.machine.container;
  diagnosis.add({Check::driver, Level::error,
                 "This machine has an NVIDIA GPU, but libcuda.so.1 cannot be loaded: " + facts.driver.cuda_load_error,
                 "Torch finds no GPU.",
                 inside ? "Start the container with `--gpus all`, so that the driver's libraries are mounted into it."
                        : "Install the driver's user-space libraries of the same version as its kernel module.",
                 inside ? kContainerGuide : kInstallGuide});
}

std::string cure_of_init(const Facts& facts, int status) {
  switch (status) {
    case 34:
      return "Take folders named `stubs` out of LD_LIBRARY_PATH: " + facts.driver.cuda_path +
             " is for linking and drives no GPU.";
    case 100:
      return "Look at CUDA_VISIBLE_DEVICES, and at whether the container was given GPUs (`--gpus all`).";
    case 802:
      return "Start the fabric manager: `systemctl start nvidia-fabricmanager`.";
    case 803:
    case 804:
      return "Make the driver's libraries and its kernel module the same version; after an update of the driver, "
             "restart the machine or the container. Take CUDA's `compat` folder out of LD_LIBRARY_PATH.";
    default:
      return "Run `nvidia-smi` and look at `dmesg` for messages of NVRM; restarting the machine helps where a GPU fell "
             "off the bus.";
  }
}

void tell_failed_init(const Facts& facts, Diagnosis& diagnosis) {
  const int status = facts.driver.init_status;
  const bool hidden = status == 100 && facts.environment.get("CUDA_VISIBLE_DEVICES").has_value();
  diagnosis.add(
      {Check::driver, hidden ? Level::warning : Level::error,
       "The driver (" + facts.driver.cuda_path + ") does not start: cuInit says " + init_error_name(status) + ".",
       "torch.cuda.is_available() is False.", cure_of_init(facts, status), kDriverApi});
}

void tell_version_mismatch(const Facts& facts, Diagnosis& diagnosis) {
  const std::string& module = facts.machine.module_version;
  if (module.empty() || facts.driver.version.empty() || module == facts.driver.version) return;
  diagnosis.add({Check::driver, Level::error,
                 "The driver's kernel module is " + module + ", its libraries are " + facts.driver.version + ".",
                 "Calls of the driver fail or crash.", "Restart the machine, or reload the kernel module.",
                 kInstallGuide});
}

// Whether no GPU in MIG mode is among those that a process of this environment gets.
bool only_whole_gpus_are_visible(const DriverAnswer& driver) {
  return !driver.visible.empty() && std::ranges::all_of(driver.visible, [&](const Gpu& visible) {
    return std::ranges::any_of(driver.all, [&](const Gpu& gpu) { return gpu.uuid == visible.uuid && !gpu.mig; });
  });
}

}  // namespace

void check_driver(const Facts& facts, Diagnosis& diagnosis) {
  const DriverAnswer& driver = facts.driver;
  if (!driver.trouble.empty()) {
    diagnosis.add({Check::driver, Level::error, "The NVIDIA driver " + driver.trouble + ".",
                   "Every program that uses CUDA here ends or hangs in the same way.",
                   "Run `nvidia-smi`; reinstall the driver, and restart the machine.", kInstallGuide});
    return;
  }
  if (!driver.loaded()) return tell_missing_driver(facts, diagnosis);
  if (driver.init_status != 0) return tell_failed_init(facts, diagnosis);
  tell_version_mismatch(facts, diagnosis);
  const std::string version = driver.version.empty() ? facts.machine.module_version : driver.version;
  diagnosis.ok(Check::driver,
               "Driver " + (version.empty() ? std::string("of unknown version") : version) + " for CUDA " +
                   cuda_version_text(driver.cuda_version) + " sees " + gpus_text(driver.visible) + ".",
               driver.cuda_path);
}

void check_wsl(const Facts& facts, Diagnosis& diagnosis) {
  const Machine& machine = facts.machine;
  if (!machine.wsl2) return;
  const std::string& loaded = facts.driver.cuda_path;
  if (!machine.dxg) {
    diagnosis.add({Check::wsl, Level::error, "This is WSL2, and /dev/dxg is missing.",
                   "Linux cannot reach the GPU of Windows.",
                   "Run `wsl --update` in Windows, and install NVIDIA's driver there (not in Linux).", kWslGuide});
  }
  const bool has_own_driver = std::ranges::any_of(
      machine.cuda_libraries, [](const std::string& path) { return !path.starts_with("/usr/lib/wsl/"); });
  const bool loads_own = !loaded.empty() && loaded.find("/wsl/") == std::string::npos;
  if (loads_own || (loaded.empty() && has_own_driver)) {
    diagnosis.add({Check::wsl, Level::error,
                   "This is WSL2, and libcuda.so.1 is that of a Linux driver (" +
                       (loaded.empty() ? machine.cuda_libraries.back() : loaded) + ").",
                   "Only /usr/lib/wsl/lib/libcuda.so.1 reaches the GPU of Windows; a Linux driver hides it.",
                   "Uninstall NVIDIA's Linux driver from the distribution (cuda-toolkit without cuda-drivers), and put "
                   "/usr/lib/wsl/lib first in LD_LIBRARY_PATH.",
                   kWslGuide});
  }
  diagnosis.add({Check::wsl, Level::warning,
                 "WSL2 sees " + gibibytes(static_cast<double>(machine.memory_total)) +
                     " of memory: half of what Windows has, unless .wslconfig says more.",
                 "Offloading to host memory has no more than that, and pinned memory is limited further: large pinned "
                 "allocations fail.",
                 "Set `memory=` under [wsl2] in %UserProfile%\\.wslconfig and run `wsl --shutdown`; use "
                 "\"pin_memory\": false where pinning fails.",
                 kWslConfig});
}

void check_mig(const Facts& facts, Diagnosis& diagnosis) {
  const auto divided = std::ranges::count(facts.driver.all, true, &Gpu::mig);
  if (divided == 0) return;
  if (only_whole_gpus_are_visible(facts.driver)) {
    diagnosis.ok(Check::mig, "No visible GPU is in MIG mode.", kMigGuide);
    return;
  }
  std::size_t instances = 0;
  for (const Gpu& gpu : facts.driver.all) instances += gpu.instances.size();
  const std::string found = counted(static_cast<std::uint64_t>(divided), "GPU") +
                            " of this machine in MIG mode, with " + counted(instances, "instance") + ".";
  if (instances == 0) {
    diagnosis.add({Check::mig, Level::error, found, "A GPU in MIG mode without instances runs nothing.",
                   "Make instances (`nvidia-smi mig -cgi … -C`), or switch MIG off.", kMigGuide});
    return;
  }
  const bool many = facts.world_size().value_or(1) > 1;
  diagnosis.add({Check::mig, many ? Level::error : Level::warning, found,
                 "A process uses one instance, and NCCL does not connect instances: training on several ranks fails.",
                 "Give each process its own instance by CUDA_VISIBLE_DEVICES=MIG-…, or switch MIG off to train on "
                 "several GPUs.",
                 kMigGuide});
}

}  // namespace devsan::doctor
