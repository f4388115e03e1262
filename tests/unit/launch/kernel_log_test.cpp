#include "launch/kernel_log.h"

#include <catch2/catch.hpp>

namespace devsan::launch {
namespace {

using Pid = std::optional<std::uint32_t>;

TEST_CASE("the kernel's record of a kill for memory names the process") {
  CHECK(killed_for_memory("3,1403,5140900,-;Out of memory: Killed process 4711 (python) total-vm:2097152kB\n") ==
        4711u);
  CHECK(killed_for_memory("3,99,1,-;Memory cgroup out of memory: Killed process 12 (pt_main_thread) total-vm:1kB\n") ==
        12u);
}

TEST_CASE("other records name nobody") {
  CHECK(killed_for_memory("") == Pid());
  CHECK(killed_for_memory("3,1,2,-;") == Pid());
  CHECK(killed_for_memory("4,1,2,-;python invoked oom-killer: gfp_mask=0xcc0, order=0\n") == Pid());
  CHECK(killed_for_memory("6,1,2,-;oom_reaper: reaped process 4711 (python), now anon-rss:0kB\n") == Pid());
  CHECK(killed_for_memory("3,1,2,-;Out of memory: Killed process many\n") == Pid());
  CHECK(killed_for_memory("Out of memory: Killed process 4711 (python)\n") == Pid());
}

TEST_CASE("what a program has written to the log is no evidence") {
  CHECK(killed_for_memory("11,1,2,-;Out of memory: Killed process 4711 (python)\n") == Pid());
  CHECK(killed_for_memory("6,1,2,-;something else\n TEXT=Out of memory: Killed process 4711 (python)\n") == Pid());
}

}  // namespace
}  // namespace devsan::launch
