#include "preload/hooks_cache.h"

#include <elf.h>
#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>

#include "launch/cache.h"
#include "launch/messages.h"
#include "temporary_directory.h"

using namespace devsan;
using devsan::launch::ScopedVariable;
using devsan::launch::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

// An ELF file with nothing in it but a build-id note, after another note.
std::string elf_with_build_id(const std::string& id) {
  const auto note = [](std::uint32_t type, const std::string& name, const std::string& value) {
    Elf64_Nhdr header{static_cast<Elf64_Word>(name.size()), static_cast<Elf64_Word>(value.size()), type};
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    for (std::string part : {name, value}) bytes += part.append((4 - part.size() % 4) % 4, '\0');
    return bytes;
  };
  const std::string gnu("GNU\0", 4);
  const std::string notes = note(NT_GNU_ABI_TAG, gnu, "abcdefg") + note(NT_GNU_BUILD_ID, gnu, id);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof header + sizeof segment;
  segment.p_filesz = notes.size();
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) +
         std::string(reinterpret_cast<const char*>(&segment), sizeof segment) + notes;
}

}  // namespace

TEST_CASE("a build-id is read from the notes of an ELF file") {
  const TemporaryDirectory directory;
  char digits[80];
  const std::string file = directory.write("lib.so", elf_with_build_id("\x01\x23\xab"));
  REQUIRE(read_build_id(file.c_str(), digits, sizeof digits));
  CHECK(std::string(digits) == "0123ab");
}

TEST_CASE("a file cut short or of another sort has no build-id") {
  const TemporaryDirectory directory;
  char digits[80];
  const std::string whole = elf_with_build_id("\x01\x23\xab");
  for (std::size_t size = 0; size < whole.size() - 1; ++size) {
    const std::string file = directory.write("cut.so", whole.substr(0, size));
    CHECK_FALSE(read_build_id(file.c_str(), digits, sizeof digits));
  }
  CHECK_FALSE(read_build_id(directory.write("text", "#!/bin/sh\n").c_str(), digits, sizeof digits));
  CHECK_FALSE(read_build_id("/nonexistent", digits, sizeof digits));
  char too_short[6];
  CHECK_FALSE(read_build_id(directory.write("lib.so", whole).c_str(), too_short, sizeof too_short));
}

TEST_CASE("hooks are ready once their library is in a private folder of the cache") {
  const TemporaryDirectory directory;
  const ScopedVariable cache("XDG_CACHE_HOME", directory.path().c_str());
  const std::string torch = directory.write("libtorch_cpu.so", elf_with_build_id("\xfe\xdc"));
  HooksLocation location;
  REQUIRE(locate_hooks(torch.c_str(), &location) == HooksState::missing);
  CHECK(location.root == (directory.path() / "devsan").string());
  CHECK(std::string(location.key).ends_with("-fedc"));

  launch::prepare_cache(location);
  CHECK(locate_hooks(torch.c_str(), &location) == HooksState::missing);
  fs::create_directory(location.directory);
  fs::permissions(location.directory, fs::perms::owner_all);
  CHECK(locate_hooks(torch.c_str(), &location) == HooksState::missing);
  directory.write(std::string("devsan/") + location.key + "/" + kHooksLibrary, "");
  CHECK(locate_hooks(torch.c_str(), &location) == HooksState::ready);

  SECTION("not where others can write into the folder") {
    fs::permissions(location.directory, fs::perms::others_write, fs::perm_options::add);
  }
  SECTION("not where others can write into the cache") {
    fs::permissions(location.root, fs::perms::group_write, fs::perm_options::add);
  }
  SECTION("not where the cache is a link to elsewhere") {
    fs::rename(location.root, directory.path() / "moved");
    fs::create_directory_symlink(directory.path() / "moved", location.root);
  }
  CHECK(locate_hooks(torch.c_str(), &location) == HooksState::not_private);
  CHECK_FALSE(launch::why_unusable(HooksState::not_private, location).empty());
}

TEST_CASE("the cache is in the home directory, and a relative XDG_CACHE_HOME means nothing") {
  char root[kCachePathSize];
  const ScopedVariable cache("XDG_CACHE_HOME", "relative");
  const ScopedVariable home("HOME", "/home/somebody");
  REQUIRE(find_cache_root(root, sizeof root));
  CHECK(std::string(root) == "/home/somebody/.cache/devsan");
}

TEST_CASE("a cache that others can write is refused") {
  const TemporaryDirectory directory;
  HooksLocation location{};
  const std::string root = (directory.path() / "cache").string();
  root.copy(location.root, sizeof location.root - 1);
  fs::create_directory(root);
  fs::permissions(root, fs::perms::all);
  CHECK_THROWS_WITH(launch::prepare_cache(location), Catch::Contains("refused"));
}

TEST_CASE("a folder is published in one step, and leaves nothing when it is not") {
  const TemporaryDirectory directory;
  HooksLocation location{};
  directory.path().string().copy(location.root, sizeof location.root - 1);
  std::string("key").copy(location.key, sizeof location.key - 1);
  const fs::path published = directory.path() / "key";
  published.string().copy(location.directory, sizeof location.directory - 1);
  const auto entries = [&] {
    return std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator());
  };

  { const launch::Staging abandoned(location); }
  CHECK(entries() == 0);
  for (const char* content : {"first", "second"}) {
    launch::Staging staging(location);
    std::ofstream(staging.path() / "library") << content;
    staging.publish();
    std::string found;
    std::ifstream(published / "library") >> found;
    CHECK(found == content);
  }
  CHECK(entries() == 1);
}

TEST_CASE("folders of builders that are gone are removed, those of others are left alone") {
  const TemporaryDirectory directory;
  HooksLocation location{};
  directory.path().string().copy(location.root, sizeof location.root - 1);
  std::string("key").copy(location.key, sizeof location.key - 1);
  launch::Owner killed = launch::Owner::current();
  killed.start += 1;
  launch::Owner elsewhere = killed;
  elsewhere.machine = "another";
  for (const char* kind : {".building-", ".replaced-"}) {
    for (const launch::Owner& owner : {killed, elsewhere}) {
      fs::create_directory(directory.path() / (kind + std::string("key.") + owner.text()));
    }
  }
  fs::create_directory(directory.path() / (".building-another." + killed.text()));
  { const launch::Staging next(location); }
  std::set<std::string> left;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory.path())) {
    left.insert(entry.path().filename().string());
  }
  CHECK(left == std::set<std::string>{".building-key." + elsewhere.text(), ".replaced-key." + elsewhere.text(),
                                      ".building-another." + killed.text()});
}

TEST_CASE("of two that publish at once one good result stays") {
  const TemporaryDirectory directory;
  HooksLocation location{};
  directory.path().string().copy(location.root, sizeof location.root - 1);
  std::string("key").copy(location.key, sizeof location.key - 1);
  (directory.path() / "key").string().copy(location.directory, sizeof location.directory - 1);
  {
    launch::Staging one(location);
    launch::Staging other(location);
    CHECK(one.path() != other.path());
    for (launch::Staging* staging : {&one, &other}) std::ofstream(staging->path() / kHooksLibrary) << "whole";
    one.publish();
    other.publish();
  }
  CHECK(fs::exists(directory.path() / "key" / kHooksLibrary));
  CHECK(std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("where the user's cache cannot be made the temporary one is taken, and that is told") {
  const TemporaryDirectory directory;
  const std::string file = directory.write("file", "in the way");
  const ScopedVariable temporary("TMPDIR", directory.path().c_str());
  const fs::path root = directory.path() / ("devsan-" + std::to_string(geteuid()));
  HooksLocation location{};
  std::string("key").copy(location.key, sizeof location.key - 1);
  SECTION("a file is in its place") {
    (file + "/devsan").copy(location.root, sizeof location.root - 1);
  }
  SECTION("there is no home") {}
  CHECK_THAT(launch::prepare_cache(location), Catch::Contains(root.string()));
  CHECK(location.root == root.string());
  CHECK(location.directory == (root / "key").string());
  CHECK(is_private_directory(root.c_str()));
}

TEST_CASE("a temporary cache that others could write is refused") {
  const TemporaryDirectory directory;
  const ScopedVariable temporary("TMPDIR", directory.path().c_str());
  const fs::path root = directory.path() / ("devsan-" + std::to_string(geteuid()));
  fs::create_directory(root);
  fs::permissions(root, fs::perms::all);
  HooksLocation location{};
  CHECK_THROWS_WITH(launch::prepare_cache(location), Catch::Contains("refused"));
}
