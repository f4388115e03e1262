#include "launch/exchange_file.h"

#include <catch2/catch.hpp>

#include "launch/messages.h"
#include "preload/hooks_cache.h"
#include "temporary_directory.h"

using namespace devsan;
using namespace devsan::launch;
namespace fs = std::filesystem;

namespace {

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

// Hooks in hooks/, and a file made of them.
struct Exported {
  Exported() {
    directory.write(std::string("hooks/") + kHooksLibrary, std::string(700, 'h') + '\0');
    directory.write(std::string("hooks/") + kSimLibrary, std::string(512, 's'));
    write_exchange_file(file, directory.path() / "hooks", "1-key", "2.13.0+cpu");
  }

  TemporaryDirectory directory;
  fs::path file = directory.path() / "hooks.tar";
};

}  // namespace

TEST_CASE("hooks come out of a file as they went in") {
  const Exported exported;
  const ExchangeFile read = read_exchange_file(exported.file);
  CHECK(read.key == "1-key");
  CHECK(read.torch == "2.13.0+cpu");
  const fs::path copy = exported.directory.path() / "copy";
  fs::create_directory(copy);
  write_libraries(read, copy);
  for (const char* name : {kHooksLibrary, kSimLibrary}) {
    CHECK(content_of(copy / name) == content_of(exported.directory.path() / "hooks" / name));
  }
}

TEST_CASE("the simulation may be missing, the hooks not") {
  const Exported exported;
  const fs::path hooks = exported.directory.path() / "hooks";
  fs::remove(hooks / kSimLibrary);
  write_exchange_file(exported.file, hooks, "1-key", "2.7.1");
  CHECK(read_exchange_file(exported.file).libraries.size() == 1);
  fs::remove(hooks / kHooksLibrary);
  write_exchange_file(exported.file, hooks, "1-key", "2.7.1");
  CHECK_THROWS_WITH(read_exchange_file(exported.file), Catch::Contains("names no hooks"));
}

TEST_CASE("a file that was cut off anywhere is refused") {
  const Exported exported;
  const std::string whole = content_of(exported.file);
  // Two blocks of zeros end an archive, and say nothing.
  for (std::size_t size = 0; size + 1024 + 512 < whole.size(); size += 97) {
    exported.directory.write("hooks.tar", whole.substr(0, size));
    CHECK_THROWS_AS(read_exchange_file(exported.file), Failure);
  }
}

TEST_CASE("a file with a changed byte is refused") {
  const Exported exported;
  const std::string whole = content_of(exported.file);
  for (const std::size_t at : {std::size_t{600}, whole.find("hhhh"), whole.find("ssss"), whole.find("ustar")}) {
    std::string changed = whole;
    changed[at] ^= 1;
    exported.directory.write("hooks.tar", changed);
    CHECK_THROWS_AS(read_exchange_file(exported.file), Failure);
  }
}

TEST_CASE("what is no such file is refused in one sentence") {
  const TemporaryDirectory directory;
  for (const std::string& text : {std::string(), std::string("text\n"), std::string(5000, '\0')}) {
    const std::string file = directory.write("file", text);
    CHECK_THROWS_WITH(read_exchange_file(file), Catch::Contains(file) && !Catch::Contains("\n"));
  }
  CHECK_THROWS_WITH(read_exchange_file("/nonexistent"), Catch::Contains("cannot read /nonexistent"));
  CHECK_THROWS_AS(read_exchange_file(directory.path()), Failure);
}

TEST_CASE("an export that cannot be written leaves nothing") {
  const Exported exported;
  const fs::path nowhere = exported.directory.path() / "none/file";
  CHECK_THROWS_WITH(write_exchange_file(nowhere, exported.directory.path() / "hooks", "k", "t"),
                    Catch::Contains("cannot write"));
}
