// The ring of collectives: entered by many threads, ended by others, read back whole.
#include "trace/collective_ring.h"

#include <catch2/catch.hpp>
#include <limits>
#include <thread>
#include <vector>

#include "sample.h"

namespace devsan::trace::testing {
namespace {

CollectiveFacts facts_of(std::uint64_t number) {
  CollectiveFacts facts{};
  facts.entered_ns = static_cast<std::int64_t>(number);
  facts.sequence = number;
  facts.bytes = number * 3;
  facts.other_bytes = ~number;
  facts.group = 1;
  return facts;
}

TEST_CASE("a collective reads back as it was entered, and as far as it came") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  CollectiveRingPayload* const ring = recorder->add_collective_ring();
  REQUIRE(ring != nullptr);
  CollectiveFacts facts = facts_of(1);
  facts.op = recorder->add_operator("c10d::allreduce_");
  facts.device = recorder->intern_device("cuda:1");
  const CollectiveRef finished = enter_collective(ring, facts, 0);
  const CollectiveRef failed = enter_collective(ring, facts_of(2), kPointToPoint);
  const CollectiveRef waiting = enter_collective(ring, facts_of(3), 0);
  enter_collective(ring, facts_of(4), 0);
  issued(finished, 0);
  ended(finished, CollectiveState::finished, 50);
  ended(finished, CollectiveState::failed, 60);  // the first end counts
  issued(finished, kEndNotTold);
  ended(failed, CollectiveState::failed, 70);
  issued(waiting, 0);
  wait_begins(waiting, 80);

  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  CHECK(trace.collectives().entered == 4);
  REQUIRE(trace.collectives().last.size() == 4);
  const CollectiveEntry& oldest = trace.collectives().last[3];
  CHECK(trace.operator_name(oldest.facts.op) == "c10d::allreduce_");
  CHECK(trace.device_name(oldest.facts.device) == "cuda:1");
  CHECK(oldest.state == CollectiveState::finished);
  CHECK(oldest.finished_ns == 50);
  CHECK(trace.collectives().last[2].state == CollectiveState::failed);
  CHECK(trace.collectives().last[2].flags == kPointToPoint);
  CHECK(trace.collectives().last[1].state == CollectiveState::issued);
  CHECK(trace.collectives().last[1].flags == kAwaitedNow);
  CHECK(trace.collectives().last[1].wait_ns == 80);
  CHECK(trace.collectives().last[0].state == CollectiveState::entered);
}

TEST_CASE("the last collectives are whole, newest first, whichever thread entered and ended them") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  CollectiveRingPayload* const ring = recorder->add_collective_ring();
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 5000;
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        const CollectiveRef collective = enter_collective(ring, facts_of(thread << 32 | i), 0);
        issued(collective, 0);
        ended(collective, CollectiveState::finished, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  CHECK(trace.collectives().entered == kThreads * kEach);
  CHECK(trace.collectives().last.size() > kCollectiveEntries - kThreads * 4);
  std::vector<std::uint64_t> newest(kThreads, kEach);
  for (const CollectiveEntry& entry : trace.collectives().last) {
    CHECK(entry.facts.bytes == entry.facts.sequence * 3);
    CHECK(entry.facts.other_bytes == ~entry.facts.sequence);
    const std::uint64_t thread = entry.facts.sequence >> 32;
    REQUIRE(thread < kThreads);
    CHECK((entry.facts.sequence & 0xFFFFFFFF) < newest[thread]);
    newest[thread] = entry.facts.sequence & 0xFFFFFFFF;
  }
}

TEST_CASE("an end that comes when the ring has come round changes no other collective") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  CollectiveRingPayload* const ring = recorder->add_collective_ring();
  const CollectiveRef old = enter_collective(ring, facts_of(1), 0);
  for (std::uint64_t i = 0; i < kCollectiveEntries; ++i) enter_collective(ring, facts_of(i + 2), 0);
  ended(old, CollectiveState::failed, 1);
  wait_begins(old, 1);

  const TraceFile trace = read_trace(*recorder);
  REQUIRE(trace.collectives().last.size() == kCollectiveEntries);
  for (const CollectiveEntry& entry : trace.collectives().last) {
    CHECK(entry.state == CollectiveState::entered);
    CHECK(entry.flags == 0);
  }
}

TEST_CASE("a group reads back with its ranks, and a failure with its frames") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  CollectiveGroupPayload group{};
  group.index = 1;
  group.rank = 2;
  group.size = 3;
  group.name = recorder->intern_string("7");
  recorder->add_collective_group(group, std::vector<std::int32_t>{4, 5, 9});
  recorder->add_collective_group(group, {});
  FailurePayload failure{};
  failure.time_ns = 5;
  failure.type = recorder->intern_string("ValueError");
  FrameRecord frame{};
  frame.position.file = recorder->intern_string("train.py");
  frame.position.line = 12;
  recorder->add_failure(failure, std::vector<FrameRecord>{frame});

  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  REQUIRE(trace.collective_groups().size() == 2);
  CHECK(trace.string(trace.collective_groups()[0].fixed.name) == "7");
  CHECK(trace.collective_groups()[0].ranks == std::vector<std::int32_t>{4, 5, 9});
  CHECK(trace.collective_groups()[1].ranks.empty());
  REQUIRE(trace.failures().size() == 1);
  CHECK(trace.string(trace.failures()[0].fixed.type) == "ValueError");
  REQUIRE(trace.failures()[0].frames.size() == 1);
  CHECK(trace.failures()[0].frames[0].position.line == 12);
}

TEST_CASE("a collective that was waited in for long reads back when the ring has come round") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  CollectiveRingPayload* const ring = recorder->add_collective_ring();
  const CollectiveRef slow = enter_collective(ring, facts_of(1), 0);
  ended(slow, CollectiveState::finished, 70);
  recorder->add_long_wait(*entry_of(slow));
  CollectiveEntry unsound = *entry_of(slow);
  unsound.state = CollectiveState::none;
  recorder->add_long_wait(unsound);
  for (std::uint64_t i = 0; i < kCollectiveEntries; ++i) enter_collective(ring, facts_of(i + 2), 0);

  const TraceFile trace = read_trace(*recorder);
  REQUIRE(trace.long_waits().size() == 1);
  CHECK(trace.long_waits()[0].facts.sequence == 1);
  CHECK(trace.long_waits()[0].number == 1);
  CHECK(trace.long_waits()[0].finished_ns == 70);
  CHECK(trace.damage().size() == 1);
}

TEST_CASE("a group of more ranks than any job has is damage") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  CollectiveGroupPayload group{};
  group.size = std::numeric_limits<std::int32_t>::max();
  recorder->add_collective_group(group, {});
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.collective_groups().empty());
  REQUIRE(trace.damage().size() == 1);
  CHECK(trace.damage()[0].bytes == sizeof(RecordHeader) + sizeof(CollectiveGroupPayload));
}

}  // namespace
}  // namespace devsan::trace::testing
