#include "preload/elf_file.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "../launch/temporary_directory.h"

using namespace devsan;
using devsan::launch::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

const std::string kTorch = std::string(DEVSAN_TOYS) + "/libtoy_torch.so";
const std::string kSlot = std::string(DEVSAN_TOYS) + "/libtoy_slot.so";

}  // namespace

TEST_CASE("what a library exports is found in the file") {
  const ElfFile torch(kTorch.c_str());
  REQUIRE(torch.sound());
  CHECK(torch.whole());
  CHECK(torch.exports("toy_operator"));
  CHECK(torch.exports("toy_newer_operator"));
  CHECK_FALSE(torch.exports("toy_operato"));
  CHECK_FALSE(torch.exports("toy_nowhere"));
  CHECK_FALSE(ElfFile(kSlot.c_str()).exports("toy_operator"));
}

TEST_CASE("what a library needs of others is found, but what has a version or may be missing") {
  std::set<std::string> names;
  ElfFile(kSlot.c_str()).any_undefined_without_version([&](const char* name) {
    names.insert(name);
    return false;
  });
  CHECK(names == std::set<std::string>{"devsan_toy", "toy_newer_operator", "toy_operator"});
  CHECK(ElfFile(kSlot.c_str()).any_needed([](const char* name) { return std::string(name) == "libtorch_cpu.so"; }));
}

TEST_CASE("a library that was cut off is incomplete") {
  const TemporaryDirectory directory;
  std::ifstream file(kSlot, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  for (std::size_t size = 0; size < whole.size(); size += 61) {
    const std::string cut = directory.write("cut.so", whole.substr(0, size));
    const ElfFile library(cut.c_str());
    CHECK_FALSE(library.whole());
    CHECK_FALSE(library.exports("toy_nowhere"));
    library.any_undefined_without_version([](const char*) { return false; });
    library.any_needed([](const char*) { return false; });
  }
}

TEST_CASE("what is no library answers with nothing") {
  const TemporaryDirectory directory;
  for (const std::string& path :
       {directory.write("text", "words\n"), std::string("/nonexistent"), directory.path().string()}) {
    const ElfFile file(path.c_str());
    CHECK_FALSE(file.sound());
    CHECK_FALSE(file.whole());
    CHECK_FALSE(file.is_static_program());
    CHECK(file.symbol_names().empty());
  }
}

TEST_CASE("a program with a loader is told from one without") {
  CHECK_FALSE(ElfFile("/proc/self/exe").is_static_program());
}
