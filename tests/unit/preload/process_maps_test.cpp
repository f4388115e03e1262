#include "preload/process_maps.h"

#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <climits>
#include <string>

using devsan::for_each_mapping;
using devsan::Mapping;

TEST_CASE("a mapping is told with its bounds and its protection") {
  constexpr std::size_t kBytes = 3 * 4096;
  void* memory = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto* middle = static_cast<char*>(memory) + 4096;
  REQUIRE(mprotect(middle, 4096, PROT_READ | PROT_WRITE) == 0);
  bool seen = false;
  CHECK(for_each_mapping(0, [&](const Mapping& mapping) {
    if (mapping.begin != reinterpret_cast<std::uintptr_t>(middle)) return true;
    seen = true;
    CHECK(mapping.end == mapping.begin + 4096);
    CHECK(mapping.protection == (PROT_READ | PROT_WRITE));
    return false;
  }));
  CHECK(seen);
  munmap(memory, kBytes);
}

TEST_CASE("this program is among the mappings of its own pid, executable") {
  char self[PATH_MAX] = {};
  REQUIRE(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  bool executable = false;
  CHECK(for_each_mapping(getpid(), [&](const Mapping& mapping) {
    executable = executable || (std::string(self) == mapping.path && (mapping.protection & PROT_EXEC) != 0);
    return true;
  }));
  CHECK(executable);
}

TEST_CASE("the mappings of a process that is not there cannot be read") {
  CHECK_FALSE(for_each_mapping(INT_MAX, [](const Mapping&) { return true; }));
}
