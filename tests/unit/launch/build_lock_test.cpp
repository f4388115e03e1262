#include "launch/build_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "launch/messages.h"
#include "temporary_directory.h"

using namespace devsan;
using namespace devsan::launch;
namespace fs = std::filesystem;

namespace {

struct Cache {
  Cache() {
    directory.path().string().copy(location.root, sizeof location.root - 1);
    std::string("key").copy(location.key, sizeof location.key - 1);
  }

  fs::path lock() const { return directory.path() / ".key.lock"; }
  std::string write_lock(const std::string& text) const { return directory.write(".key.lock", text); }
  std::string signature() const {
    std::string text;
    std::ifstream(lock()) >> text;
    return text;
  }
  std::ptrdiff_t entries() const {
    return std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator());
  }

  TemporaryDirectory directory;
  HooksLocation location{};
};

Owner on_another_machine() {
  Owner owner = Owner::current();
  owner.machine = "another";
  return owner;
}

Owner ended_process() {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  waitpid(pid, nullptr, 0);
  Owner owner = Owner::current();
  owner.pid = pid;
  return owner;
}

void make_older(const fs::path& path, long seconds) {
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  const timespec times[2] = {{status.st_atime, 0}, {status.st_mtime - seconds, 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

// What the lock's holder does when somebody must wait for it: it goes.
struct Waits {
  const Cache& cache;
  int count = 0;
  void operator()() {
    ++count;
    fs::remove(cache.lock());
  }
};

}  // namespace

TEST_CASE("an owner is written and read") {
  const Owner owner = Owner::current();
  const std::optional<Owner> read = Owner::parse(owner.text());
  REQUIRE(read);
  CHECK(read->text() == owner.text());
  CHECK(read->pid == getpid());
  CHECK(life_of(*read) == Life::alive);
  CHECK(Owner::current().random != owner.random);
  for (const char* text : {"", "a.b.1.2", "a.b.x.2.c", "a.b.1.x.c", "a.b.1.2.", "....", "\n"}) {
    CHECK_FALSE(Owner::parse(text));
  }
}

TEST_CASE("a process that has ended is dead, and so is one whose number another has") {
  CHECK(life_of(ended_process()) == Life::dead);
  Owner earlier = Owner::current();
  ++earlier.start;
  CHECK(life_of(earlier) == Life::dead);
  CHECK(life_of(on_another_machine()) == Life::elsewhere);
}

TEST_CASE("a lock is signed, and gone afterwards") {
  const Cache cache;
  {
    const BuildLock lock(cache.location, [] { FAIL("nobody has it"); });
    const std::optional<Owner> owner = Owner::parse(cache.signature());
    REQUIRE(owner);
    CHECK(owner->pid == getpid());
  }
  CHECK(cache.entries() == 0);
}

TEST_CASE("a lock that a living process holds is waited for") {
  const Cache cache;
  for (const Owner& owner : {Owner::current(), on_another_machine()}) {
    cache.write_lock(owner.text());
    Waits waits{cache};
    { const BuildLock lock(cache.location, std::ref(waits)); }
    CHECK(waits.count == 1);
    CHECK(cache.entries() == 0);
  }
}

TEST_CASE("a lock that nobody has signed yet is waited for") {
  const Cache cache;
  cache.write_lock("");
  Waits waits{cache};
  { const BuildLock lock(cache.location, std::ref(waits)); }
  CHECK(waits.count == 1);
}

TEST_CASE("an abandoned lock is taken over") {
  const Cache cache;
  SECTION("of a process of this machine that has ended") {
    cache.write_lock(ended_process().text());
  }
  SECTION("of another machine that has not touched it for long") {
    cache.write_lock(on_another_machine().text());
    make_older(cache.lock(), 3600);
  }
  SECTION("of somebody unknown") {
    cache.write_lock("");
    make_older(cache.lock(), 3600);
  }
  {
    const BuildLock lock(cache.location, [] { FAIL("its owner is gone"); });
    CHECK(Owner::parse(cache.signature())->pid == getpid());
  }
  CHECK(cache.entries() == 0);
}

TEST_CASE("a living process of this machine keeps its lock, however old it is") {
  const Cache cache;
  cache.write_lock(Owner::current().text());
  make_older(cache.lock(), 3600);
  Waits waits{cache};
  { const BuildLock lock(cache.location, std::ref(waits)); }
  CHECK(waits.count == 1);
}

TEST_CASE("who has lost its lock leaves that of the new owner alone") {
  const Cache cache;
  const std::string other = on_another_machine().text();
  {
    const BuildLock lock(cache.location, [] {});
    cache.write_lock(other);
  }
  CHECK(cache.signature() == other);
}

TEST_CASE("a lock that cannot be made is an error that names the reason") {
  HooksLocation nowhere{};
  std::string("/nonexistent").copy(nowhere.root, sizeof nowhere.root - 1);
  CHECK_THROWS_WITH(BuildLock(nowhere, [] {}), Catch::Contains("cannot lock"));
}
