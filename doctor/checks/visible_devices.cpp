#include <set>

#include "doctor/checks/checks.h"
#include "doctor/checks/visible_list.h"
#include "doctor/text.h"

namespace devsan::doctor {
namespace {

constexpr char kVariables[] =
    "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables";
constexpr char kTorchReading[] = "https://github.com/pytorch/pytorch/blob/main/torch/cuda/__init__.py";

// Of the machine: by NVML, or as many as the kernel has devices for.
std::vector<Gpu> machine_gpus(const Facts& facts) {
  if (!facts.driver.all.empty()) return facts.driver.all;
  return std::vector<Gpu>(static_cast<std::size_t>(facts.machine.device_files));
}

void tell_order(const Facts& facts, Diagnosis& diagnosis) {
  std::set<std::string> models;
  for (const Gpu& gpu : facts.driver.all) models.insert(gpu.name);
  if (models.size() < 2 || facts.environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID") return;
  diagnosis.add({Check::visible_devices, Level::warning,
                 "This machine has GPUs of " + std::to_string(models.size()) +
                     " models, and CUDA_VISIBLE_DEVICES names them by number.",
                 "CUDA numbers the fastest first, nvidia-smi by the PCI bus: the numbers may mean other GPUs.",
                 "Set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name the GPUs by UUID (`nvidia-smi -L`).", kVariables});
}

void tell_list(const std::string& value, const VisibleList& list, Diagnosis& diagnosis) {
  const std::string found = "CUDA_VISIBLE_DEVICES=" + value;
  if (!list.doubled.empty()) {
    diagnosis.add({Check::visible_devices, Level::error, found + " names " + list.doubled + " twice.",
                   "With a doubled entry no GPU is visible at all.", "Name each GPU once.", kTorchReading});
    return;
  }
  diagnosis.add({Check::visible_devices, Level::error,
                 found + ": the entry '" + list.stopped_at + "' " + list.why + ".",
                 list.taken == 0 ? "CUDA stops there, so that no GPU is visible."
                                 : "CUDA stops there: of " + std::to_string(list.entries) + " entries it takes " +
                                       std::to_string(list.taken) + ".",
                 "Name GPUs that are there, by number from 0 or by UUID; `nvidia-smi -L` lists both.", kVariables});
}

}  // namespace

void check_visible_devices(const Facts& facts, Diagnosis& diagnosis) {
  const std::optional<std::string> value = facts.environment.get("CUDA_VISIBLE_DEVICES");
  if (!value) {
    if (facts.driver.works())
      diagnosis.ok(Check::visible_devices, "CUDA_VISIBLE_DEVICES is not set: every GPU is visible.");
    return;
  }
  const VisibleList list = read_visible_list(*value, machine_gpus(facts));
  if (list.hides_all) {
    diagnosis.add({Check::visible_devices, Level::warning, "CUDA_VISIBLE_DEVICES='" + *value + "' hides every GPU.",
                   "torch.cuda.is_available() is False.",
                   "Unset it, where that is not meant: `unset CUDA_VISIBLE_DEVICES`.", kVariables});
    return;
  }
  if (!list.why.empty() || !list.doubled.empty()) {
    tell_list(*value, list, diagnosis);
  } else {
    diagnosis.ok(Check::visible_devices,
                 "CUDA_VISIBLE_DEVICES=" + *value + " makes " + counted(list.taken, "GPU") + " visible.");
  }
  if (list.by_index) tell_order(facts, diagnosis);
}

}  // namespace devsan::doctor
