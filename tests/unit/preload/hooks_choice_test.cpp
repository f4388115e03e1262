#include "preload/hooks_choice.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "../launch/temporary_directory.h"
#include "preload/hooks_fit.h"

using namespace devsan;
using devsan::launch::ScopedVariable;
using devsan::launch::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

const fs::path kToys = DEVSAN_TOYS;

void put(const std::string& toy, const fs::path& file) {
  fs::create_directories(file.parent_path());
  fs::copy_file(kToys / ("lib" + toy + ".so"), file, fs::copy_options::overwrite_existing);
}

// A torch, an installation of devsan with one slot for it, and a cache.
struct Machine {
  Machine() {
    put("toy_torch", libtorch());
    put("toy_c10", path() / "torch/lib/libc10.so");
    write_version("2.13.0+cpu");
    put("toy_slot", slot() / kHooksLibrary);
    put("toy_slot", slot() / kSimLibrary);
    write_index(kHooksSources, "0123abcd cxx11 2.13\n");
  }

  fs::path path() const { return directory.path(); }
  fs::path libtorch() const { return path() / "torch/lib/libtorch_cpu.so"; }
  fs::path slot() const { return path() / "devsan/hooks/2.13"; }

  void write_version(const std::string& version, const std::string& commit = "0123abcd") const {
    directory.write("torch/version.py", "from typing import Optional\n__all__ = ['__version__']\n__version__ = '" +
                                            version + "'\ncuda: Optional[str] = None\ngit_version = '" + commit +
                                            "'\n");
  }
  void write_index(const std::string& sources, const std::string& lines) const {
    directory.write("devsan/hooks/index", "devsan-hooks 1 " + sources + "\n" + lines);
  }

  std::string key() const {
    HooksLocation location{};
    REQUIRE(make_cache_key(libtorch().c_str(), &location));
    return location.key;
  }
  fs::path make_cached(const fs::path& root) const {
    put("toy_slot", root / key() / kHooksLibrary);
    for (const fs::path& made : {root, root / key()}) chmod(made.c_str(), 0700);
    return root / key();
  }

  HooksChoice choose() {
    complaints.clear();
    HooksChoice choice;
    const Complaints listener{
        [](const char* sentence, void* list) { static_cast<std::vector<std::string>*>(list)->emplace_back(sentence); },
        &complaints};
    choose_hooks(libtorch().c_str(), (path() / "devsan").c_str(), listener, &choice);
    return choice;
  }

  TemporaryDirectory directory;
  ScopedVariable cache{"XDG_CACHE_HOME", (directory.path() / "cache").c_str()};
  ScopedVariable temporary{"TMPDIR", (directory.path() / "tmp").c_str()};
  ScopedVariable given{"DEVSAN_HOOKS_PATH", nullptr};
  std::vector<std::string> complaints;
};

void check_passed_over(Machine& machine, const std::string& why) {
  const fs::path cached = machine.make_cached(machine.path() / "cache/devsan");
  const HooksChoice choice = machine.choose();
  CHECK(choice.place == HooksPlace::cache);
  CHECK(choice.directory.view() == cached.string());
  REQUIRE(machine.complaints.size() == 1);
  CHECK_THAT(machine.complaints[0], Catch::Contains(why) && !Catch::Contains("\n"));
}

}  // namespace

TEST_CASE("a torch is told by its commit and the ABI of its strings") {
  const Machine machine;
  TorchIdentity torch = identify_torch(machine.libtorch().c_str());
  CHECK(torch.version.view() == "2.13.0+cpu");
  CHECK(torch.git_version.view() == "0123abcd");
  CHECK(torch.abi == CxxAbi::cxx11);
  put("toy_c10_pre_cxx11", machine.path() / "torch/lib/libc10.so");
  CHECK(identify_torch(machine.libtorch().c_str()).abi == CxxAbi::pre_cxx11);
  put("toy_c10_unmarked", machine.path() / "torch/lib/libc10.so");
  CHECK(identify_torch(machine.libtorch().c_str()).abi == CxxAbi::unknown);
  fs::remove(machine.path() / "torch/lib/libc10.so");
  fs::remove(machine.path() / "torch/version.py");
  torch = identify_torch(machine.libtorch().c_str());
  CHECK(torch.abi == CxxAbi::none);
  CHECK((torch.version.empty() && torch.git_version.empty()));
}

TEST_CASE("versions are compared by their numbers") {
  CHECK(is_older("2.5.1+cu121", 2, 6));
  CHECK(is_older("1.13.0", 2, 6));
  for (const char* version : {"2.6.0", "2.10.0a0+git1234", "3.0.0", "", "main", "2"})
    CHECK_FALSE(is_older(version, 2, 6));
}

TEST_CASE("a torch whose commit and ABI the index names gets that slot") {
  Machine machine;
  const HooksChoice choice = machine.choose();
  CHECK(choice.place == HooksPlace::slot);
  CHECK(choice.directory.view() == machine.slot().string());
  CHECK(has_simulation(choice.directory.c_str()));
  CHECK(machine.complaints.empty());
}

TEST_CASE("the number of a version chooses nothing") {
  Machine machine;
  SECTION("another commit of the same number") {
    machine.write_version("2.13.0+cpu", "ffff");
  }
  SECTION("no commit") {
    machine.write_version("2.13.0+cpu", "");
  }
  SECTION("the other ABI") {
    put("toy_c10_pre_cxx11", machine.path() / "torch/lib/libc10.so");
  }
  CHECK(machine.choose().place == HooksPlace::none);
  CHECK(machine.complaints.empty());
}

TEST_CASE("a slot that does not fit is passed over in one sentence") {
  Machine machine;
  SECTION("torch lacks a function") {
    put("toy_older_torch", machine.libtorch());
    check_passed_over(machine, "torch has no toy_newer_operator");
  }
  SECTION("a library is cut off") {
    fs::resize_file(machine.slot() / kSimLibrary, 5000);
    check_passed_over(machine, std::string(kSimLibrary) + " is incomplete");
  }
  SECTION("the hooks are missing") {
    fs::remove(machine.slot() / kHooksLibrary);
    check_passed_over(machine, std::string(kHooksLibrary) + " is incomplete");
  }
  SECTION("the index is of other sources") {
    machine.write_index("0.1.0 ffffffffffffffff", "0123abcd cxx11 2.13\n");
    check_passed_over(machine, "other sources");
  }
  SECTION("the index is cut off in its first line") {
    machine.directory.write("devsan/hooks/index", "devsan-ho");
    check_passed_over(machine, "other sources");
  }
}

TEST_CASE("lines of the index that mean nothing do no harm, and another line may fit") {
  Machine machine;
  machine.write_index(kHooksSources,
                      "\n0123abcd\n0123abcd cxx11\n0123abcd cxx11 ../2.13\n0123abcd cxx11 gone\n"
                      "0123abcd cxx11 2.13\n");
  CHECK(machine.choose().place == HooksPlace::slot);
  CHECK(machine.complaints.size() == 1);
}

TEST_CASE("folders of DEVSAN_HOOKS_PATH come before slots, and slots before the cache") {
  Machine machine;
  machine.make_cached(machine.path() / "cache/devsan");
  CHECK(machine.choose().place == HooksPlace::slot);
  const fs::path given = machine.make_cached(machine.path() / "given");
  const std::string path = ":/nonexistent:" + (machine.path() / "given").string();
  const ScopedVariable variable("DEVSAN_HOOKS_PATH", path.c_str());
  const HooksChoice choice = machine.choose();
  CHECK(choice.place == HooksPlace::given);
  CHECK(choice.directory.view() == given.string());
  CHECK(machine.complaints.empty());
}

TEST_CASE("a folder of DEVSAN_HOOKS_PATH that others can write is passed over") {
  Machine machine;
  const fs::path given = machine.make_cached(machine.path() / "given");
  const ScopedVariable variable("DEVSAN_HOOKS_PATH", (machine.path() / "given").c_str());
  SECTION("itself") {
    chmod(given.parent_path().c_str(), 0777);
  }
  SECTION("what is in it") {
    chmod(given.c_str(), 0770);
  }
  CHECK(machine.choose().place == HooksPlace::slot);
  REQUIRE(machine.complaints.size() == 1);
  CHECK_THAT(machine.complaints[0], Catch::Contains("DEVSAN_HOOKS_PATH"));
}

TEST_CASE("hooks in the temporary cache are found when the user's own has none") {
  Machine machine;
  machine.write_index(kHooksSources, "");
  const fs::path root = machine.path() / ("tmp/devsan-" + std::to_string(geteuid()));
  const fs::path made = machine.make_cached(root);
  CHECK(machine.choose().directory.view() == made.string());
  SECTION("not where others can write to it") {
    chmod(root.c_str(), 0777);
  }
  SECTION("not before the user's own") {
    machine.make_cached(machine.path() / "cache/devsan");
  }
  CHECK(machine.choose().directory.view() != made.string());
}

TEST_CASE("for a torch that is too old nothing is looked for") {
  Machine machine;
  machine.write_version("2.5.1");
  const HooksChoice choice = machine.choose();
  CHECK(choice.torch_is_too_old);
  CHECK(choice.place == HooksPlace::none);
}
