#include "hooks/inprocess/common/spin_guard.h"

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

namespace devsan::hooks {
namespace {

TEST_CASE("a spin guard excludes other threads") {
  constexpr int kThreads = 4;
  constexpr int kRounds = 20000;
  std::atomic_flag lock = ATOMIC_FLAG_INIT;
  int plain_counter = 0;
  std::atomic<int> held{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        const SpinGuard guard(lock);
        if (!guard.held()) continue;
        ++plain_counter;
        held.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(plain_counter == held.load());
  CHECK(plain_counter > 0);
}

TEST_CASE("a spin guard gives up on a lock that nobody will release, and leaves it taken") {
  std::atomic_flag lock = ATOMIC_FLAG_INIT;
  REQUIRE_FALSE(lock.test_and_set());
  {
    const SpinGuard guard(lock);
    CHECK_FALSE(guard.held());
  }
  CHECK(lock.test_and_set());
  lock.clear();
  const SpinGuard guard(lock);
  CHECK(guard.held());
}

TEST_CASE("a spin guard releases its lock at the end of its scope") {
  std::atomic_flag lock = ATOMIC_FLAG_INIT;
  { const SpinGuard guard(lock); }
  CHECK_FALSE(lock.test_and_set());
}

}  // namespace
}  // namespace devsan::hooks
