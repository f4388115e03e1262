// What the kernel and the container allow.
#include "doctor/checks/checks.h"
#include "doctor/text.h"

namespace devsan::doctor {
namespace {

constexpr char kNcclTroubleshooting[] =
    "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html";
constexpr char kTorchDocker[] = "https://github.com/pytorch/pytorch#docker-image";
constexpr char kWorkerSharing[] = "https://docs.pytorch.org/docs/stable/multiprocessing.html#sharing-strategies";

constexpr std::uint64_t kGibi = std::uint64_t{1} << 30;
constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;

void check_host_memory(const Machine& machine, Diagnosis& diagnosis) {
  if (machine.memory_total == 0) return;
  const std::string total = gibibytes(static_cast<double>(machine.memory_total));
  if (!machine.group_limit) {
    diagnosis.ok(Check::host_memory,
                 "This machine has " + total + " of memory, of which " +
                     gibibytes(static_cast<double>(machine.memory_available)) + " are free.",
                 "/proc/meminfo");
    return;
  }
  const double limit = static_cast<double>(*machine.group_limit);
  const double left = static_cast<double>(machine.memory_left());
  const bool nearly_full = left < 0.1 * limit;
  diagnosis.add(
      {Check::host_memory, nearly_full ? Level::warning : Level::ok,
       "This process may use " + gibibytes(limit) + " of the machine's " + total + ", of which " + gibibytes(left) +
           " are left.",
       "The kernel kills a process that goes over it; free, psutil and /proc/meminfo show the machine's memory.",
       nearly_full ? "Raise the limit of the container (docker --memory, Kubernetes limits.memory, Slurm --mem)." : "",
       machine.group_version == 2 ? "/sys/fs/cgroup/memory.max" : "/sys/fs/cgroup/memory/memory.limit_in_bytes"});
}

bool trains_on_several(const Facts& facts) {
  return facts.world_size().value_or(facts.driver.visible.size()) > 1;
}

void check_locked_memory(const Facts& facts, Diagnosis& diagnosis) {
  const std::optional<Limit>& limit = facts.machine.locked_memory;
  if (!limit) return;
  if (limit->unlimited) {
    diagnosis.ok(Check::locked_memory, "Memory may be locked without limit.", "/proc/self/limits");
    return;
  }
  const bool small = limit->value < kGibi && (trains_on_several(facts) || facts.deepspeed);
  diagnosis.add(
      {Check::locked_memory, small ? Level::warning : Level::ok,
       "A process may lock " + gibibytes(static_cast<double>(limit->value)) + " of memory.",
       "NCCL over InfiniBand, and DeepSpeed's offloading to NVMe, lock their buffers and fail beyond that. "
       "Memory that CUDA pins does not count.",
       small ? "Start the container with `--ulimit memlock=-1`, or set memlock in /etc/security/limits.conf." : "",
       kNcclTroubleshooting});
}

void check_shared_memory(const Facts& facts, Diagnosis& diagnosis) {
  const std::optional<std::uint64_t>& size = facts.machine.shared_memory;
  if (!size) return;
  const std::string found = "/dev/shm holds " + gibibytes(static_cast<double>(*size)) + ".";
  if (*size <= 64 * kMebi) {
    diagnosis.add(
        {Check::shared_memory, trains_on_several(facts) ? Level::error : Level::warning,
         found + " That is Docker's default.",
         "NCCL between GPUs of a machine and DataLoader workers put their buffers there: they fail with "
         "\"unhandled system error\", \"No space left on device\" or a bus error.",
         "Start the container with `--shm-size=16g` or `--ipc=host`; in Kubernetes mount an emptyDir of medium "
         "Memory.",
         kTorchDocker});
  } else if (*size < kGibi) {
    diagnosis.add({Check::shared_memory, Level::warning, found,
                   "NCCL and DataLoader workers put their buffers there, and fail when it is full.",
                   "Start the container with `--shm-size=16g` or `--ipc=host`.", kTorchDocker});
  } else {
    diagnosis.ok(Check::shared_memory, found, kTorchDocker);
  }
}

void check_open_files(const Machine& machine, Diagnosis& diagnosis) {
  if (!machine.open_files) return;
  constexpr std::uint64_t kFew = 1024;
  const bool few = !machine.open_files->unlimited && machine.open_files->value < kFew;
  const std::string count = machine.open_files->unlimited ? "any number of" : std::to_string(machine.open_files->value);
  diagnosis.add({Check::open_files, few ? Level::warning : Level::ok, "A process may have " + count + " files open.",
                 few ? "DataLoader workers pass tensors as open files, and fail with \"Too many open files\"." : "",
                 few ? "`ulimit -n 65536`, or torch.multiprocessing.set_sharing_strategy(\"file_system\")." : "",
                 few ? kWorkerSharing : "/proc/self/limits"});
}

}  // namespace

void check_limits(const Facts& facts, Diagnosis& diagnosis) {
  check_host_memory(facts.machine, diagnosis);
  check_locked_memory(facts, diagnosis);
  check_shared_memory(facts, diagnosis);
  check_open_files(facts.machine, diagnosis);
}

}  // namespace devsan::doctor
