#include "doctor/machine/machine.h"

#include <catch2/catch.hpp>

#include "../launch/temporary_directory.h"

using namespace devsan::doctor;

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// A file system with the files of a kernel.
class Root : public devsan::launch::TemporaryDirectory {
 public:
  Root() { write("proc/meminfo", "MemTotal:       67108864 kB\nMemFree: 1 kB\nMemAvailable:   33554432 kB\n"); }

  Machine machine() const { return read_machine(path()); }
};

}  // namespace

TEST_CASE("memory and limits are read from /proc") {
  Root root;
  root.write("proc/self/limits",
             "Limit                     Soft Limit           Hard Limit           Units\n"
             "Max open files            1024                 1048576              files\n"
             "Max locked memory         unlimited            unlimited            bytes\n");
  root.write("proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");
  const Machine machine = root.machine();
  CHECK(machine.memory_total == 64 * kGiB);
  CHECK(machine.memory_left() == 32 * kGiB);
  CHECK(machine.kernel == "6.1.0-13-amd64");
  CHECK_FALSE(machine.wsl2);
  REQUIRE(machine.open_files);
  CHECK(machine.open_files->value == 1024);
  REQUIRE(machine.locked_memory);
  CHECK(machine.locked_memory->unlimited);
}

TEST_CASE("a machine without these files has no limits") {
  devsan::launch::TemporaryDirectory empty;
  const Machine machine = read_machine(empty.path());
  CHECK(machine.memory_total == 0);
  CHECK_FALSE(machine.locked_memory);
  CHECK_FALSE(machine.open_files);
  CHECK_FALSE(machine.group_limit);
  CHECK_FALSE(machine.shared_memory);
}

TEST_CASE("control groups of both versions limit memory") {
  Root root;
  SECTION("version 2") {
    root.write("proc/self/cgroup", "0::/job\n");
    root.write("sys/fs/cgroup/job/memory.max", std::to_string(16 * kGiB));
    root.write("sys/fs/cgroup/job/memory.current", std::to_string(6 * kGiB));
    root.write("sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file " + std::to_string(2 * kGiB) + "\n");
    CHECK(root.machine().group_version == 2);
  }
  SECTION("version 1") {
    root.write("proc/self/cgroup", "4:cpu,cpuacct:/job\n3:memory:/job\n");
    root.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(16 * kGiB));
    root.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", std::to_string(6 * kGiB));
    root.write("sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file " + std::to_string(2 * kGiB) + "\n");
    CHECK(root.machine().group_version == 1);
  }
  SECTION("version 2, seen from inside a container, where the path is the one outside") {
    root.write("proc/self/cgroup", "0::/../../outside\n");
    root.write("sys/fs/cgroup/memory.max", std::to_string(16 * kGiB));
    root.write("sys/fs/cgroup/memory.current", std::to_string(4 * kGiB));
  }
  const Machine machine = root.machine();
  REQUIRE(machine.group_limit);
  CHECK(*machine.group_limit == 16 * kGiB);
  CHECK(machine.memory_left() == 12 * kGiB);
}

TEST_CASE("no limit, and one above what the machine has, are none") {
  Root root;
  root.write("proc/self/cgroup", "0::/\n3:memory:/\n");
  root.write("sys/fs/cgroup/memory.max", "max\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK_FALSE(root.machine().group_limit);
  root.write("sys/fs/cgroup/memory.max", std::to_string(128 * kGiB));
  CHECK_FALSE(root.machine().group_limit);
}

TEST_CASE("WSL2 tells itself by the kernel's name") {
  Root root;
  root.write("proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n");
  root.write("dev/dxg", "");
  root.write("usr/lib/wsl/lib/libcuda.so.1", "");
  const Machine machine = root.machine();
  CHECK(machine.wsl2);
  CHECK(machine.dxg);
  CHECK(machine.cuda_libraries == std::vector<std::string>{"/usr/lib/wsl/lib/libcuda.so.1"});
}

TEST_CASE("the driver's module is of the version that /proc tells") {
  Root root;
  root.write(
      "proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version: 12.2\n");
  CHECK(root.machine().module_version == "535.104.05");
  root.write("proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build\n");
  CHECK(root.machine().module_version == "580.82.07");
}

TEST_CASE("device files are counted without those of control") {
  Root root;
  for (const char* name : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap1"}) {
    root.write(std::string("dev/") + name, "");
  }
  CHECK(root.machine().device_files == 2);
}

TEST_CASE("CUDA toolkits are found, the chosen one first") {
  Root root;
  root.write("usr/local/cuda/version.json", R"({"cuda" : {"name" : "CUDA SDK", "version" : "12.4.1"}})");
  root.write("usr/local/cuda-11.8/version.txt", "CUDA Version 11.8.0\n");
  CHECK(root.machine().toolkits == std::vector<std::string>{"12.4.1", "11.8.0"});
}

TEST_CASE("a container tells itself") {
  Root root;
  CHECK_FALSE(root.machine().container);
  root.write(".dockerenv", "");
  CHECK(root.machine().container);
}
