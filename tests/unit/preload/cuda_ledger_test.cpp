#include "preload/cuda_ledger.h"

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

namespace devsan::cuda {
namespace {

using trace::MemorySpace;

struct Ready {
  Ledger ledger;
  Ready() { REQUIRE(ledger.clear()); }
};

TEST_CASE_METHOD(Ready, "memory is found by its address, once") {
  CHECK(ledger.add(0x7f0000001000, {4096, 3, MemorySpace::device}));
  const std::optional<Block> block = ledger.take(0x7f0000001000);
  REQUIRE(block);
  CHECK(block->bytes == 4096);
  CHECK(block->device == 3);
  CHECK(block->space == MemorySpace::device);
  CHECK(!ledger.take(0x7f0000001000));
  CHECK(!ledger.take(0x7f0000002000));
}

TEST_CASE_METHOD(Ready, "physical memory lives until its last handle and its last mapping are gone") {
  std::optional<Block> ended;
  CHECK(ledger.add_physical(7, {2 << 20, 1, MemorySpace::device}));
  CHECK(ledger.device_of(7) == 1);
  ledger.map(0x1000000, 1 << 20, 7);
  ledger.map(0x1100000, 1 << 20, 7);
  CHECK(!ledger.release(7));
  CHECK(ledger.unmap(0x1000000, &ended) == 1 << 20);
  CHECK(!ended);
  CHECK(ledger.unmap(0x1100000, &ended) == 1 << 20);
  REQUIRE(ended);
  CHECK(ended->bytes == 2 << 20);
  CHECK(ledger.unmap(0x1100000, &ended) == 0);
}

TEST_CASE_METHOD(Ready, "a handle that was given twice is released twice") {
  CHECK(ledger.add_physical(7, {100, 0, MemorySpace::device}));
  ledger.retain(7);
  CHECK(!ledger.release(7));
  CHECK(ledger.release(7)->bytes == 100);
  CHECK(!ledger.release(7));
}

TEST_CASE_METHOD(Ready, "a handle's number may be given again while old mappings last") {
  std::optional<Block> ended;
  CHECK(ledger.add_physical(7, {100, 0, MemorySpace::device}));
  ledger.map(0x1000, 100, 7);
  CHECK(!ledger.release(7));
  CHECK(ledger.add_physical(7, {200, 0, MemorySpace::device}));
  CHECK(ledger.unmap(0x1000, &ended) == 100);
  REQUIRE(ended);
  CHECK(ended->bytes == 100);
  CHECK(ledger.release(7)->bytes == 200);
}

TEST_CASE_METHOD(Ready, "as many come and go as a long run makes") {
  for (std::uint64_t i = 1; i <= 1'000'000; ++i) {
    REQUIRE(ledger.add(i * 512, {i, 0, MemorySpace::device}));
    if (i > 1000) {
      REQUIRE(ledger.take((i - 1000) * 512));
    }
  }
}

TEST_CASE_METHOD(Ready, "what finds no room is refused, and nothing else is lost for it") {
  std::vector<std::uint64_t> kept;
  for (std::uint64_t i = 1; i <= 100'000; ++i) {
    if (ledger.add(i * 4096, {i, 0, MemorySpace::device})) kept.push_back(i);
  }
  CHECK(kept.size() > 50'000);
  CHECK(kept.size() < 100'000);
  for (const std::uint64_t i : kept) REQUIRE(ledger.take(i * 4096)->bytes == i);
}

TEST_CASE_METHOD(Ready, "threads do not lose each other's memory") {
  std::vector<std::thread> threads;
  std::atomic<int> lost{0};
  for (std::uint64_t thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 1; i <= 20'000; ++i) {
        const std::uint64_t address = thread << 40 | i % 64 << 12;
        if (!ledger.add(address, {i, 0, MemorySpace::device})) ++lost;
        const std::optional<Block> block = ledger.take(address);
        if (!block || block->bytes != i) ++lost;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(lost == 0);
}

TEST_CASE_METHOD(Ready, "it is empty again after it was cleared") {
  CHECK(ledger.add(0x1000, {1, 0, MemorySpace::device}));
  CHECK(ledger.clear());
  CHECK(!ledger.take(0x1000));
}

}  // namespace
}  // namespace devsan::cuda
