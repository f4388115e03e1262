#include "hooks/inprocess/events/meeting_table.h"

#include <catch2/catch.hpp>
#include <memory>
#include <thread>
#include <vector>

namespace devsan::hooks {
namespace {

MeetingKey key_of(std::uint32_t site, std::uint16_t op, std::uint64_t devices, bool raised) {
  MeetingKey key;
  key.site = trace::SiteId{site};
  key.op = trace::OperatorId{op};
  key.devices = devices;
  key.flags = raised;
  return key;
}

TEST_CASE("a meeting is found by its site, forward, operator, devices, outcome and file, and by no fewer") {
  const auto table = std::make_unique<MeetingTable>();
  trace::MeetingPayload meeting{};
  const MeetingKey key = key_of(7, 3, 1234, true);
  CHECK(table->find(key, 1) == nullptr);
  table->add(key, 1, &meeting);
  CHECK(table->find(key, 1) == &meeting);
  CHECK(table->find(key_of(8, 3, 1234, true), 1) == nullptr);
  CHECK(table->find(key_of(7, 4, 1234, true), 1) == nullptr);
  CHECK(table->find(key_of(7, 3, 1235, true), 1) == nullptr);
  CHECK(table->find(key_of(7, 3, 1234, false), 1) == nullptr);
  MeetingKey of_other_forward = key;
  of_other_forward.forward = trace::SiteId{9};
  CHECK(table->find(of_other_forward, 1) == nullptr);
  CHECK(table->find(key, 2) == nullptr);  // a fork child has a file of its own
}

TEST_CASE("a full table forgets meetings, but never takes one for another") {
  const auto table = std::make_unique<MeetingTable>();
  std::vector<trace::MeetingPayload> meetings(5000);
  const auto key = [](std::size_t k) {
    return key_of(static_cast<std::uint32_t>(k % 97 + 1), static_cast<std::uint16_t>(k / 97 + 1), k * 7, k % 2 == 0);
  };
  for (std::size_t k = 0; k < meetings.size(); ++k) {
    table->add(key(k), 1, &meetings[k]);
    REQUIRE(table->find(key(k), 1) == &meetings[k]);
  }
  std::size_t kept = 0;
  for (std::size_t k = 0; k < meetings.size(); ++k) {
    const trace::MeetingPayload* found = table->find(key(k), 1);
    if (found == nullptr) continue;
    ++kept;
    CHECK(found == &meetings[k]);
  }
  CHECK(kept >= 256);
}

TEST_CASE("threads that share the table get their own meetings back") {
  constexpr std::size_t kThreads = 4;
  const auto table = std::make_unique<MeetingTable>();
  std::vector<std::vector<trace::MeetingPayload>> meetings(kThreads, std::vector<trace::MeetingPayload>(300));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t round = 0; round < 10; ++round) {
        for (std::size_t k = 0; k < meetings[thread].size(); ++k) {
          const MeetingKey key =
              key_of(static_cast<std::uint32_t>(k + 1), static_cast<std::uint16_t>(thread + 1), 5, true);
          table->add(key, 1, &meetings[thread][k]);
          const trace::MeetingPayload* found = table->find(key, 1);
          if (found != nullptr && found != &meetings[thread][k]) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace devsan::hooks
