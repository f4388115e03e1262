#include "launch/environment.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "launch/installation.h"
#include "temporary_directory.h"

using namespace devsan::launch;
namespace fs = std::filesystem;

TEST_CASE("ours comes first, and what was preloaded stays in its order") {
  CHECK(merge_preload("", "/d/libdevsan.so") == "/d/libdevsan.so");
  CHECK(merge_preload("libjemalloc.so:/x/b.so", "/d/libdevsan.so") == "/d/libdevsan.so:libjemalloc.so:/x/b.so");
  CHECK(merge_preload(" libjemalloc.so  /x/b.so ", "/d/libdevsan.so") == "/d/libdevsan.so:libjemalloc.so:/x/b.so");
}

TEST_CASE("a preloaded sanitizer stays in front, where it insists to be") {
  CHECK(merge_preload("/usr/lib/libasan.so.8:libm.so", "/d/libdevsan.so") ==
        "/usr/lib/libasan.so.8:/d/libdevsan.so:libm.so");
  CHECK(merge_preload("libm.so:/llvm/libclang_rt.asan-x86_64.so", "/d/libdevsan.so") ==
        "/llvm/libclang_rt.asan-x86_64.so:/d/libdevsan.so:libm.so");
}

TEST_CASE("devsan is preloaded once, however deep the runs are nested") {
  const std::string once = merge_preload("libm.so", "/d/libdevsan.so");
  CHECK(merge_preload(once, "/d/libdevsan.so") == once);
  CHECK(merge_preload("/other/libdevsan.so:libm.so", "/d/libdevsan.so") == once);
  CHECK(merge_preload("/tmp/devsan-0/libdevsan-0123456789abcdef.so", "/d/libdevsan.so") == "/d/libdevsan.so");
}

TEST_CASE("flags win over DEVSAN_OPTIONS, and what no flag names is kept") {
  RunFlags flags;
  flags.sim = 4;
  flags.sim_late_copies = true;
  flags.sim_guard = true;
  flags.out = "/traces";
  const auto merged = merge_options("sim=2:sim_memory=8G:trace_size=4M:out=/elsewhere", flags, "/default");
  CHECK(merged.complaints.empty());
  CHECK(merged.options.sim == 4);
  CHECK(merged.options.sim_memory == "8G");
  CHECK(merged.options.sim_late_copies);
  CHECK(merged.options.sim_guard);
  CHECK(merged.options.trace_size == "4M");
  CHECK(merged.options.out == "/traces");
}

TEST_CASE("the directory is absolute, wherever it was named") {
  const fs::path here = fs::current_path();
  CHECK(merge_options("", {}, "devsan-out/1").options.out == (here / "devsan-out/1").string());
  CHECK(merge_options("out=a/../b", {}, "devsan-out/1").options.out == (here / "b").string());
  RunFlags flags;
  flags.out = "c";
  CHECK(merge_options("out=/x", flags, "d").options.out == (here / "c").string());
}

TEST_CASE("a directory with ':' and quotes in its name survives the way through the environment") {
  RunFlags flags;
  flags.out = "/a:b \"c\"\\d";
  const auto merged = merge_options("", flags, "/default");
  const auto again = devsan::trace::parse_options(devsan::trace::format_options(merged.options));
  CHECK(again.complaints.empty());
  CHECK(again.options.out == *flags.out);
}

TEST_CASE("nonsense in DEVSAN_OPTIONS is complained about once and not passed on") {
  const auto merged = merge_options("nonsense:sim=2", {}, "/default");
  CHECK(merged.complaints.size() == 1);
  CHECK(devsan::trace::parse_options(devsan::trace::format_options(merged.options)).complaints.empty());
  CHECK(merged.options.sim == 2);
}

TEST_CASE("the file of suppressions is found from any directory") {
  RunFlags flags;
  flags.suppressions = "sub/../my.supp";
  flags.halt = true;
  const auto merged = merge_options("suppressions=/other", flags, "out");
  CHECK(merged.options.suppressions == (fs::current_path() / "my.supp").string());
  CHECK(merged.options.halt);
  const auto inherited = merge_options("suppressions=mine:halt=1", RunFlags{}, "out");
  CHECK(inherited.options.suppressions == (fs::current_path() / "mine").string());
  CHECK(inherited.options.halt);
  CHECK(merge_options("", RunFlags{}, "out").options.suppressions.empty());
}

TEST_CASE("an environment is changed in place, and added to") {
  const ScopedVariable variable("DEVSAN_TEST_VARIABLE", "old");
  Environment environment = Environment::inherited();
  CHECK(environment.get("DEVSAN_TEST_VARIABLE") == "old");
  CHECK_FALSE(environment.get("DEVSAN_TEST_VARIABL"));
  const std::size_t before = environment.for_exec().size();
  environment.set("DEVSAN_TEST_VARIABLE", "new");
  CHECK(environment.get("DEVSAN_TEST_VARIABLE") == "new");
  CHECK(environment.for_exec().size() == before);
  environment.set("DEVSAN_TEST_ANOTHER", "");
  CHECK(environment.get("DEVSAN_TEST_ANOTHER") == "");
  CHECK(environment.for_exec().size() == before + 1);
  CHECK(environment.for_exec().back() == nullptr);
}

TEST_CASE("a path that LD_PRELOAD cannot carry gets a link of the user's own") {
  const TemporaryDirectory directory;
  const ScopedVariable cache("XDG_CACHE_HOME", (directory.path() / "cache").c_str());
  const std::string plain = directory.write("plain/libdevsan.so", "");
  CHECK(preload_name(plain) == plain);

  std::set<std::string> names;
  for (const char* odd : {"a b", "a:b", "a$LIB"}) {
    const std::string library = directory.write(std::string(odd) + "/libdevsan.so", "");
    const std::string name = preload_name(library);
    CHECK(fits_in_preload(name));
    CHECK(fs::read_symlink(name) == library);
    CHECK(preload_name(library) == name);
    names.insert(name);
  }
  CHECK(names.size() == 3);
  CHECK((fs::status(directory.path() / "cache/devsan").permissions() & fs::perms::all) == fs::perms::owner_all);
}

TEST_CASE("a link is not put where others can write") {
  const TemporaryDirectory directory;
  const fs::path cache = directory.path() / "cache/devsan";
  fs::create_directories(cache);
  fs::permissions(cache, fs::perms::all);
  const ScopedVariable variable("XDG_CACHE_HOME", (directory.path() / "cache").c_str());
  const ScopedVariable runtime("XDG_RUNTIME_DIR", (directory.path() / "run").c_str());
  const std::string library = directory.write("a b/libdevsan.so", "");
  CHECK(fs::path(preload_name(library)).parent_path().parent_path() == directory.path() / "run");
  CHECK(fs::is_empty(cache));
}
