#include "launch/oom_kills.h"

#include <catch2/catch.hpp>

#include "temporary_directory.h"

namespace devsan::launch {
namespace {

TEST_CASE("kills for memory are counted in the process's own control group") {
  const TemporaryDirectory root;
  root.write("proc/self/cgroup", "0::/jobs/17\n");
  root.write("sys/fs/cgroup/jobs/17/memory.events", "low 0\nhigh 4\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n");
  root.write("sys/fs/cgroup/memory.events", "oom_kill 99\n");
  CHECK(oom_kills(root.path()) == std::optional<std::uint64_t>(2));
}

TEST_CASE("the first version of control groups counts in another file") {
  const TemporaryDirectory root;
  root.write("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/jobs\n1:name=systemd:/\n0::/b\n");
  root.write("sys/fs/cgroup/memory/jobs/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n");
  CHECK(oom_kills(root.path()) == std::optional<std::uint64_t>(7));
}

TEST_CASE("where kills are not counted nothing is said") {
  const TemporaryDirectory root;
  CHECK(!oom_kills(root.path()));
  root.write("proc/self/cgroup", "0::/\nnonsense\n");
  CHECK(!oom_kills(root.path()));
  root.write("sys/fs/cgroup/memory.events", "low 0\n");
  CHECK(!oom_kills(root.path()));
}

}  // namespace
}  // namespace devsan::launch
