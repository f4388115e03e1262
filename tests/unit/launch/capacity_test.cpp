#include "launch/capacity.h"

#include <catch2/catch.hpp>

#include "temporary_directory.h"

using namespace devsan::launch;

namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30;

std::string bytes(double gibibytes) {
  return std::to_string(static_cast<std::size_t>(gibibytes * static_cast<double>(kGiB)));
}

// A machine with 64 GiB to be had, seen by a process of these control groups.
class Machine {
 public:
  explicit Machine(const std::string& groups) {
    directory_.write("proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable:   67108864 kB\nBuffers: 1 kB\n");
    directory_.write("proc/self/cgroup", groups);
  }

  Machine& has(const std::string& file, const std::string& text) {
    directory_.write("sys/fs/cgroup/" + file, text);
    return *this;
  }

  Capacity capacity() const { return read_capacity(directory_.path()); }

 private:
  TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("without limits all that the machine has counts") {
  CHECK(Machine("0::/\n").capacity().memory == 64 * kGiB);
  CHECK(Machine("").capacity().processors == read_capacity("/nonexistent").processors);
}

TEST_CASE("a control group of version 2 limits memory, of which files that were read give way") {
  Machine machine("0::/jobs/7\n");
  machine.has("jobs/7/memory.max", bytes(8)).has("jobs/7/memory.current", bytes(5));
  CHECK(machine.capacity().memory == 3 * kGiB);
  machine.has("jobs/7/memory.stat", "anon 5\nfile 7\ninactive_file " + bytes(2) + "\nactive_file 1\n");
  CHECK(machine.capacity().memory == 5 * kGiB);
  SECTION("a group above it may be tighter") {
    machine.has("jobs/memory.max", bytes(4)).has("jobs/memory.current", bytes(3));
    CHECK(machine.capacity().memory == 1 * kGiB);
  }
  SECTION("one that is used up leaves nothing") {
    machine.has("jobs/7/memory.max", bytes(1));
    CHECK(machine.capacity().memory == 0);
    CHECK(compilers_within(machine.capacity()) == 1);
  }
  SECTION("no limit is none") {
    machine.has("jobs/7/memory.max", "max\n");
    CHECK(machine.capacity().memory == 64 * kGiB);
  }
}

TEST_CASE("in a container the group's files lie at the top") {
  Machine machine("0::/docker/0123\n");
  machine.has("memory.max", bytes(2)).has("memory.current", bytes(1)).has("cpu.max", "100000 100000\n");
  CHECK(machine.capacity().memory == 1 * kGiB);
  CHECK(machine.capacity().processors == 1);
}

TEST_CASE("a control group of version 1 limits memory and processors") {
  Machine machine("5:cpu,cpuacct:/jobs\n3:memory:/jobs\n1:name=systemd:/\n0::/\n");
  machine.has("memory/jobs/memory.limit_in_bytes", bytes(4)).has("memory/jobs/memory.usage_in_bytes", bytes(3));
  machine.has("memory/jobs/memory.stat", "inactive_file 1\ntotal_inactive_file " + bytes(1) + "\n");
  machine.has("cpu/jobs/cpu.cfs_quota_us", "50000").has("cpu/jobs/cpu.cfs_period_us", "100000");
  CHECK(machine.capacity().memory == 2 * kGiB);
  CHECK(machine.capacity().processors == 1);
  machine.has("cpu/jobs/cpu.cfs_quota_us", "-1");
  CHECK(machine.capacity().processors == read_capacity("/nonexistent").processors);
}

TEST_CASE("a compiler gets one and a half gibibytes, and there is always one") {
  CHECK(compilers_within({16 * kGiB, 4}) == 4);
  CHECK(compilers_within({5 * kGiB, 4}) == 3);
  CHECK(compilers_within({kGiB, 4}) == 1);
  CHECK(compilers_within({0, 0}) == 1);
  CHECK(compiler_slots() >= 1);
}
