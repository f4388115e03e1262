// Processes, machines and GPUs of accelerate's config.
#include <algorithm>

#include "doctor/checks/accelerate_part.h"
#include "doctor/config/key_values.h"
#include "doctor/config/known_keys.h"
#include "doctor/text.h"

namespace devsan::doctor {
namespace {

class ProcessChecker : AccelerateChecker {
 public:
  ProcessChecker(const Facts& facts, Diagnosis& diagnosis)
      : AccelerateChecker(facts, diagnosis), machines_(number_at("", "num_machines", 1)) {}

  void check() {
    check_number();
    if (const auto processes = whole_number(find_value(config_, "num_processes"))) check_division(*processes);
    check_machines();
    check_gpu_ids();
  }

 private:
  // The types that torchrun starts.
  bool distributed() const {
    return type_ == "FSDP" || type_ == "DEEPSPEED" || type_ == "MEGATRON_LM" ||
           (type_.starts_with("MULTI_") && type_ != "MULTI_CPU");
  }

  void check_number() {
    const Json* processes = find_value(config_, "num_processes");
    if (processes == nullptr) {
      if (type_.empty() || type_ == "NO") return;
      tell_value(Level::warning, "There is no num_processes.",
                 "accelerate launch stops without it, unless it is given as --num_processes.",
                 "Set it to the number of GPUs of all machines.", "num_processes");
      return;
    }
    const KeyInfo& info = known_keys().accelerate_sections.at("").keys.at("num_processes");
    const bool told = distributed() && !fits(info, *processes);  // by the check of types
    if (processes->is_string() && !told && (machines_ > 1 || !distributed())) {
      tell_value(Level::error, "num_processes is " + shown(*processes) + ", a text.",
                 "accelerate launch computes with it and stops with TypeError.", "Write a number without quotes.",
                 "num_processes");
    }
    const std::optional<std::int64_t> number = whole_number(processes);
    if (number && (*number == -1 || (*number < 1 && distributed()))) {
      tell_value(Level::error, "num_processes is " + std::to_string(*number) + ".",
                 "accelerate launch stops: no process can be started.", "Set it to the number of GPUs of all machines.",
                 "num_processes");
    }
  }

  void check_division(std::int64_t processes) {
    if (type_ == "MULTI_GPU" && processes == 1) {
      tell_value(Level::error, "distributed_type is MULTI_GPU with num_processes 1.",
                 "accelerate launch stops: it needs at least 2.",
                 "Set num_processes to the number of GPUs, or distributed_type to 'NO'.", "num_processes");
    }
    if (processes > 0 && machines_ > 1 && processes % machines_ != 0) {
      tell_value(Level::error,
                 "num_processes " + std::to_string(processes) + " cannot be divided among " +
                     std::to_string(machines_) + " machines.",
                 "num_processes counts the processes of all machines.", "Set it to machines x GPUs of a machine.",
                 "num_processes");
      return;
    }
    const std::size_t gpus = facts_.driver.visible.size();
    const std::int64_t here = machines_ > 0 ? processes / machines_ : processes;
    const bool on_gpus = type_ == "MULTI_GPU" || type_ == "DEEPSPEED" || type_ == "FSDP";
    if (on_gpus && gpus > 0 && here > static_cast<std::int64_t>(gpus)) {
      tell_value(Level::error,
                 std::to_string(here) + " processes on this machine, and " + counted(gpus, "visible GPU") + ".",
                 "A process finds no GPU of its own: \"invalid device ordinal\".",
                 "Set num_processes to the number of GPUs.", "num_processes");
    }
  }

  // DeepSpeed's launchers that log in to the other machines go by a hostfile.
  bool goes_by_rank() const {
    const std::string launcher = text_at(config_, "deepspeed_config.deepspeed_multinode_launcher");
    return distributed() && (type_ != "DEEPSPEED" || launcher == "standard" || launcher == "nossh");
  }

  void check_machines() {
    const std::int64_t rank = number_at("", "machine_rank", 0);
    const std::string ranks = "machine_rank is " + std::to_string(rank) + ", and num_machines is ";
    if (machines_ <= 1 && rank != 0) {
      tell_value(Level::warning, ranks + std::to_string(machines_) + ".",
                 "accelerate passes machine_rank over: each machine trains alone.",
                 "Set num_machines to the number of machines, or machine_rank to 0.", "machine_rank");
    }
    if (machines_ <= 1 || !goes_by_rank()) return;
    if (rank < 0 || rank >= machines_) {
      tell_value(Level::error, ranks + std::to_string(machines_) + ".",
                 "Ranks of machines count from 0: this one is of no machine, and the others wait for theirs.",
                 "Set it to another number from 0 to " + std::to_string(machines_ - 1) + " on each machine.",
                 "machine_rank");
    }
    if (accelerate_text(config_, "", "main_process_ip", "").empty()) {
      tell_value(Level::warning, "There is no main_process_ip for " + std::to_string(machines_) + " machines.",
                 "They look for each other at the address \"None\", unless it is given as --main_process_ip.",
                 "Set it to the address of the machine of rank 0.", "main_process_ip");
    }
  }

  void check_gpu_ids() {
    const Json* ids = find_value(config_, "gpu_ids");
    if (ids == nullptr || ids->is_null()) return;
    if (!ids->is_string()) return;  // which the check of types tells
    const std::string text = ids->get<std::string>();
    if (text == "all") return;
    const auto count = 1 + std::ranges::count(text, ',');
    if (type_ == "MULTI_GPU" && count < 2 && machines_ <= 1) {
      tell_value(Level::error, "distributed_type is MULTI_GPU, and gpu_ids names one GPU.", "accelerate launch stops.",
                 "Name at least two GPUs, or all.", "gpu_ids");
    }
    if (const auto visible = facts_.environment.get("CUDA_VISIBLE_DEVICES"); visible && *visible != text) {
      tell_value(Level::warning, "gpu_ids is " + text + ", and CUDA_VISIBLE_DEVICES is " + *visible + ".",
                 "accelerate launch replaces CUDA_VISIBLE_DEVICES by gpu_ids.", "Set one of the two.", "gpu_ids");
    }
  }

  const std::int64_t machines_;
};

}  // namespace

void check_processes(const Facts& facts, Diagnosis& diagnosis) {
  ProcessChecker(facts, diagnosis).check();
}

}  // namespace devsan::doctor
