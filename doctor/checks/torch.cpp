// The build of torch against the driver, the GPUs and the packages beside it.
#include <algorithm>
#include <charconv>
#include <map>

#include "doctor/checks/checks.h"
#include "doctor/text.h"

namespace devsan::doctor {
namespace {

constexpr char kGetStarted[] = "https://pytorch.org/get-started/locally/";
constexpr char kCompatibility[] = "https://docs.nvidia.com/deploy/cuda-compatibility/";
constexpr char kComputeCapability[] = "https://developer.nvidia.com/cuda-gpus";
constexpr char kNcclVariables[] = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html";
constexpr char kDeepSpeedInstall[] = "https://www.deepspeed.ai/tutorials/advanced-install/";

int major_of(const std::string& version) {
  int major = 0;
  std::from_chars(version.data(), version.data() + version.size(), major);
  return major;
}

// The first driver for each major version of CUDA: with one of them, minor versions are compatible.
struct DriverFor {
  int cuda;
  const char* driver;
};
constexpr DriverFor kFirstDrivers[] = {{11, "450.80.02"}, {12, "525.60.13"}, {13, "580.65.06"}};

std::string first_driver(int cuda) {
  for (const DriverFor& entry : kFirstDrivers) {
    if (entry.cuda == cuda) return entry.driver;
  }
  return {};
}

bool has_nvidia_gpu(const Facts& facts) {
  return facts.driver.works() || facts.machine.device_files > 0 || facts.machine.dxg;
}

// "sm_90a" is 90 and runs on that capability alone; "compute_90" is code that the driver compiles for any later one.
struct Architecture {
  int number = 0;
  bool specific = false;
  bool compiled_later = false;
};

Architecture architecture_of(const std::string& name) {
  Architecture result;
  const std::size_t digits = name.find('_') + 1;
  std::from_chars(name.data() + digits, name.data() + name.size(), result.number);
  result.specific = name.ends_with('a') || name.ends_with('f');
  result.compiled_later = name.starts_with("compute");
  return result;
}

// Code runs on later minor versions of its own capability, and what the driver compiles on all later ones.
bool runs_on(const std::vector<std::string>& architectures, const Gpu& gpu) {
  return std::ranges::any_of(architectures, [&](const std::string& name) {
    const Architecture one = architecture_of(name);
    if (one.specific) return one.number == gpu.capability();
    if (one.compiled_later) return one.number <= gpu.capability();
    return one.number / 10 == gpu.major && one.number % 10 <= gpu.minor;
  });
}

void tell_wrong_version(const std::string& name, const std::string& wanted, const std::string& have, Check check,
                        const Facts& facts, Diagnosis& diagnosis) {
  diagnosis.add({check, have.empty() ? Level::error : Level::warning,
                 have.empty() ? name + " is missing; torch asks for " + wanted + "."
                              : name + " is " + have + "; torch asks for " + wanted + ".",
                 have.empty() ? "Importing torch fails, or it loads another library of that name."
                              : "Symbols may be missing, or results differ from what torch was tested with.",
                 "pip install " + name + "==" + wanted, facts.torch->directory.string()});
}

bool is_nccl(const std::string& package) {
  return package.starts_with("nvidia-nccl-");
}

}  // namespace

void check_torch(const Facts& facts, Diagnosis& diagnosis) {
  if (!facts.python.trouble.empty()) {
    diagnosis.add({Check::torch, Level::error, facts.python.trouble, "", "Name another Python with --python.", ""});
    return;
  }
  if (!facts.torch) {
    diagnosis.add({Check::torch, Level::warning, facts.python.path + " has no torch.",
                   "Nothing about torch could be checked.", "Name the Python that trains with --python.", kGetStarted});
    return;
  }
  const TorchBuild& torch = *facts.torch;
  const std::string build = "torch " + torch.version + " (Python " + facts.python.version + ")";
  if (!torch.hip.empty()) {
    diagnosis.add({Check::torch, Level::warning, build + " is built for ROCm " + torch.hip + ".",
                   "The checks of the driver and of GPUs are for NVIDIA's.", "", torch.directory.string()});
  } else if (torch.cuda.empty() && has_nvidia_gpu(facts)) {
    diagnosis.add({Check::torch, Level::error, build + " is built without CUDA, and this machine has a GPU.",
                   "torch.cuda.is_available() is False.",
                   "Install a build for CUDA: `pip install torch` from the index that the page names.", kGetStarted});
  } else if (torch.cuda.empty()) {
    diagnosis.ok(Check::torch, build + " is built for the CPU.", torch.directory.string());
  } else {
    diagnosis.ok(Check::torch, build + " is built for CUDA " + torch.cuda + ".", torch.directory.string());
  }
}

void check_torch_driver(const Facts& facts, Diagnosis& diagnosis) {
  if (!facts.torch || facts.torch->cuda.empty() || !facts.driver.loaded() || facts.driver.cuda_version == 0) return;
  const int wanted = major_of(facts.torch->cuda);
  const int has = facts.driver.cuda_version / 1000;
  const std::string driver = cuda_version_text(facts.driver.cuda_version);
  if (has >= wanted) {
    diagnosis.ok(Check::torch_driver, "The driver runs CUDA " + driver + ", torch needs " + facts.torch->cuda + ".",
                 kCompatibility);
    return;
  }
  const std::string oldest = first_driver(wanted);
  diagnosis.add({Check::torch_driver, Level::error,
                 "Torch is built for CUDA " + facts.torch->cuda + ", and the driver runs CUDA " + driver + " at most.",
                 "Torch says that the NVIDIA driver is too old, and sees no GPU.",
                 (oldest.empty() ? std::string("Update the driver") : "Update the driver to " + oldest + " or later") +
                     ", or install a torch built for CUDA " + std::to_string(has) + ".",
                 kCompatibility});
}

void check_arch_list(const Facts& facts, Diagnosis& diagnosis) {
  if (!facts.torch || facts.torch->architectures.empty() || facts.driver.visible.empty()) return;
  const std::vector<std::string>& list = facts.torch->architectures;
  std::map<int, std::string> failing;
  for (const Gpu& gpu : facts.driver.visible) {
    if (gpu.major > 0 && !runs_on(list, gpu)) failing.emplace(gpu.capability(), gpu.name);
  }
  if (failing.empty()) {
    diagnosis.ok(Check::arch_list, "Torch has code for every visible GPU (" + listed(list) + ").", kComputeCapability);
  }
  for (const auto& [capability, name] : failing) {
    const std::string number = std::to_string(capability / 10) + "." + std::to_string(capability % 10);
    const bool older = capability < architecture_of(list.front()).number;
    diagnosis.add({Check::arch_list, Level::error,
                   name + " has compute capability " + number + "; torch has code for " + listed(list) + ".",
                   "Kernels fail with \"no kernel image is available for execution on the device\".",
                   older ? "Install an older torch, or one for an older CUDA, that still has this capability."
                         : "Install a newer torch, built for a CUDA that knows this GPU.",
                   kComputeCapability});
  }
}

void check_cuda_libraries(const Facts& facts, Diagnosis& diagnosis) {
  if (!facts.torch || facts.torch->cuda.empty() || facts.torch->requirements.empty()) return;
  std::size_t wrong = 0;
  std::size_t right = 0;
  for (const auto& [name, version] : facts.torch->requirements) {
    if (is_nccl(name)) continue;
    const std::string have = facts.packages.version(name);
    ++(have == version ? right : wrong);
    if (have != version) tell_wrong_version(name, version, have, Check::cuda_libraries, facts, diagnosis);
  }
  if (wrong == 0 && right > 0) {
    diagnosis.ok(Check::cuda_libraries,
                 counted(right, "package") + " of NVIDIA are of the versions that torch asks for.",
                 facts.torch->directory.string());
  }
}

void check_nccl(const Facts& facts, Diagnosis& diagnosis) {
  if (!facts.torch || facts.torch->cuda.empty()) return;
  for (const auto& [name, version] : facts.torch->requirements) {
    if (!is_nccl(name)) continue;
    const std::string have = facts.packages.version(name);
    if (have == version) {
      diagnosis.ok(Check::nccl, "NCCL " + have + ", as torch asks for.", facts.torch->directory.string());
    } else {
      tell_wrong_version(name, version, have, Check::nccl, facts, diagnosis);
    }
  }
  for (const char* variable : {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"}) {
    const std::string value = facts.environment.get(variable).value_or("0");
    if (value.empty() || value == "0") continue;
    diagnosis.add({Check::nccl, Level::warning, std::string(variable) + "=" + value + " is set.",
                   "NCCL leaves out a fast way between GPUs.",
                   "Unset it, unless it works around a fault of this machine.", kNcclVariables});
  }
}

// DeepSpeed compiles CPUAdam, FusedAdam and others at first use, and refuses a toolkit of another major version.
void check_toolkit(const Facts& facts, Diagnosis& diagnosis) {
  if (!facts.torch || facts.torch->cuda.empty() || facts.packages.find("deepspeed") == nullptr) return;
  if (const std::optional<std::string> home = facts.environment.get("CUDA_HOME")) {
    diagnosis.ok(Check::toolkit,
                 "DeepSpeed compiles its operators with the toolkit that CUDA_HOME names, " + *home + ".",
                 kDeepSpeedInstall);
    return;
  }
  if (facts.machine.toolkits.empty()) {
    diagnosis.add({Check::toolkit, Level::warning,
                   "DeepSpeed is installed, and there is no CUDA toolkit in /usr/local.",
                   "DeepSpeed cannot compile FusedAdam and its like, unless CUDA_HOME names a toolkit.",
                   "Install the toolkit of CUDA " + facts.torch->cuda + ", or set CUDA_HOME.", kDeepSpeedInstall});
    return;
  }
  const std::string& version = facts.machine.toolkits.front();
  const int major = major_of(facts.torch->cuda);
  if (major_of(version) == major) {
    diagnosis.ok(Check::toolkit, "The CUDA toolkit " + version + " fits torch's CUDA " + facts.torch->cuda + ".",
                 kDeepSpeedInstall);
    return;
  }
  diagnosis.add({Check::toolkit, Level::error,
                 "The CUDA toolkit is " + version + ", torch is built for CUDA " + facts.torch->cuda + ".",
                 "DeepSpeed refuses to compile its operators: \"Installed CUDA version … does not match\".",
                 "Install the toolkit of CUDA " + std::to_string(major) + ", and set CUDA_HOME to it.",
                 kDeepSpeedInstall});
}

void check_hooks(const Facts& facts, Diagnosis& diagnosis) {
  if (!facts.hooks) return;
  diagnosis.add({Check::hooks, facts.hooks->level, facts.hooks->found, "", facts.hooks->cure, ""});
}

}  // namespace devsan::doctor
