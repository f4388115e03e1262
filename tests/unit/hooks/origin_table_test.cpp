#include "hooks/inprocess/provenance/origin_table.h"

#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

namespace devsan::hooks {
namespace {

constexpr std::uint32_t kMaxNode = (1U << 20) - 1;

// Addresses as the allocator gives them out: 16-byte aligned, below the 47 bits of user space.
const void* address(std::uint64_t place) {
  return reinterpret_cast<const void*>(0x7f00'0000'0000 + place * 16);
}

void insert(OriginTable& table, const void* storage, std::uint32_t node) {
  if (auto* vacancy = table.vacancy(storage)) OriginTable::fill(vacancy, storage, trace::LineageId{node});
}

std::uint32_t node_of(const OriginTable& table, const void* storage) {
  return static_cast<std::uint32_t>(table.find(storage));
}

TEST_CASE("a storage has the node that it was given, until it dies") {
  const auto table = std::make_unique<OriginTable>();
  CHECK(node_of(*table, address(1)) == 0);
  insert(*table, address(1), kMaxNode);
  CHECK(node_of(*table, address(1)) == kMaxNode);
  CHECK(node_of(*table, address(2)) == 0);
  table->erase(address(1));
  CHECK(node_of(*table, address(1)) == 0);
  insert(*table, address(1), 5);
  CHECK(node_of(*table, address(1)) == 5);
}

TEST_CASE("a storage keeps its first node") {
  const auto table = std::make_unique<OriginTable>();
  insert(*table, address(1), 11);
  CHECK(table->vacancy(address(1)) == nullptr);
  CHECK(node_of(*table, address(1)) == 11);
}

TEST_CASE("the lowest and the highest addresses are told apart") {
  const auto table = std::make_unique<OriginTable>();
  const auto* lowest = reinterpret_cast<const void*>(std::uintptr_t{16});
  const auto* highest = reinterpret_cast<const void*>((std::uintptr_t{1} << 47) - 16);
  insert(*table, lowest, 1);
  insert(*table, highest, 2);
  CHECK(node_of(*table, lowest) == 1);
  CHECK(node_of(*table, highest) == 2);
}

TEST_CASE("erasing a storage that has no node changes nothing") {
  const auto table = std::make_unique<OriginTable>();
  insert(*table, address(1), 1);
  table->erase(address(2));
  CHECK(node_of(*table, address(1)) == 1);
}

// `live` addresses are in use at a time, of a pool that is reused over and over.
void compare_with_map(std::uint64_t pool, std::size_t rounds, double kept_at_least) {
  const auto table = std::make_unique<OriginTable>();
  std::unordered_map<const void*, std::uint32_t> truth;
  std::mt19937_64 random(20261121);
  std::size_t asked = 0;
  std::size_t known = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    const void* storage = address(random() % pool);
    const auto found = truth.find(storage);
    if (found == truth.end()) {
      if (node_of(*table, storage) != 0) FAIL("a storage that was never tagged has a node in round " << round);
      const auto node = static_cast<std::uint32_t>(random() % kMaxNode + 1);
      truth[storage] = node;
      insert(*table, storage, node);
      if (node_of(*table, storage) != node) FAIL("a new tag is not there in round " << round);
    } else {
      const std::uint32_t node = node_of(*table, storage);
      if (node != 0 && node != found->second) FAIL("a storage has another's node in round " << round);
      ++asked;
      known += node != 0;
      if (random() % 2 == 0) {
        table->erase(storage);
        truth.erase(found);
      }
    }
  }
  CHECK(static_cast<double>(known) >= kept_at_least * static_cast<double>(asked));
}

TEST_CASE("addresses that are freed and used again never show an old node") {
  compare_with_map(500, 300000, 1.0);
}

TEST_CASE("a table with more storages than room loses nodes, and never mixes them up") {
  compare_with_map(400000, 1500000, 0.25);
}

TEST_CASE("threads that share buckets never see each other's nodes") {
  constexpr std::uint64_t kThreads = 2;
  const auto table = std::make_unique<OriginTable>();
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(thread);
      std::unordered_map<const void*, std::uint32_t> mine;
      for (std::size_t round = 0; round < 200000; ++round) {
        const void* storage = address(random() % 100000 * kThreads + thread);
        const auto found = mine.find(storage);
        const std::uint32_t node = node_of(*table, storage);
        if (found == mine.end()) {
          wrong += node != 0;
          const auto given = static_cast<std::uint32_t>(random() % kMaxNode + 1);
          insert(*table, storage, given);
          mine[storage] = given;
        } else {
          wrong += node != 0 && node != found->second;
          table->erase(storage);
          mine.erase(found);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace devsan::hooks
