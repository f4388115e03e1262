// The records of device calls: written by many threads, read back whole.
#include "trace/device_calls.h"

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "sample.h"

namespace devsan::trace::testing {
namespace {

DeviceCallEvent event_of(Recorder& recorder, std::uint64_t number) {
  DeviceCallEvent event{};
  event.address = number;
  event.bytes = number * 3;
  event.stream = ~number;
  event.call = recorder.intern_string("cuMemAlloc_v2");
  event.kind = DeviceCallKind::allocate;
  event.space = MemorySpace::device;
  return event;
}

TEST_CASE("counters of device calls read back as they were counted") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  DeviceCallPayload fixed{};
  fixed.call = recorder->intern_string("cudaMemcpyAsync");
  fixed.kind = DeviceCallKind::copy;
  fixed.device = recorder->intern_device("cuda:1");
  fixed.direction = CopyDirection::device_to_host;
  DeviceCallPayload* const counter = recorder->add_device_call(fixed);
  REQUIRE(counter != nullptr);
  count_call(counter, {false, false, true, 100, 7});
  count_call(counter, {false, false, false, 50, 0});
  count_call(counter, {true, false, false, 1000, 0});
  count_call(counter, {false, true, false, 1000, 0});

  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  REQUIRE(trace.device_calls().size() == 1);
  const DeviceCallPayload& call = trace.device_calls()[0];
  CHECK(trace.string(call.call) == "cudaMemcpyAsync");
  CHECK(trace.device_name(call.device) == "cuda:1");
  CHECK(call.direction == CopyDirection::device_to_host);
  CHECK(call.calls == 2);
  CHECK(call.failed == 1);
  CHECK(call.captured == 1);
  CHECK(call.waits == 1);
  CHECK(call.bytes == 150);
  CHECK(call.wait_ns == 7);
}

TEST_CASE("what is live has a peak with its step") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  DeviceMemoryPayload fixed{};
  fixed.space = MemorySpace::pinned;
  DeviceMemoryPayload* const memory = recorder->add_device_memory(fixed);
  count_allocated(memory, 100, 3);
  count_allocated(memory, 50, 4);
  count_released(memory, 100);
  count_allocated(memory, 60, 5);

  const TraceFile trace = read_trace(*recorder);
  REQUIRE(trace.device_memory().size() == 1);
  CHECK(trace.device_memory()[0].live == 110);
  CHECK(trace.device_memory()[0].peak == 150);
  CHECK(trace.device_memory()[0].peak_step == 4);
  CHECK(trace.device_memory()[0].blocks == 2);
}

TEST_CASE("the last device calls are whole, newest first, whichever thread made them") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  CallRingPayload* const ring = recorder->add_call_ring();
  REQUIRE(ring != nullptr);
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 5000;
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < kEach; ++i) note_call(ring, event_of(*recorder, thread << 32 | i));
    });
  }
  for (std::thread& thread : threads) thread.join();

  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  CHECK(trace.last_calls().recorded == kThreads * kEach);
  CHECK(trace.last_calls().last.size() <= kCallRingEntries);
  CHECK(trace.last_calls().last.size() > kCallRingEntries - kThreads * 4);
  std::vector<std::uint64_t> newest(kThreads, kEach);
  for (const DeviceCallEvent& event : trace.last_calls().last) {
    CHECK(event.bytes == event.address * 3);
    CHECK(event.stream == ~event.address);
    const std::uint64_t thread = event.address >> 32;
    const std::uint64_t number = event.address & 0xFFFFFFFF;
    REQUIRE(thread < kThreads);
    CHECK(number < newest[thread]);
    newest[thread] = number;
  }
}

TEST_CASE("an entry that was being written is passed over") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  CallRingPayload* const ring = recorder->add_call_ring();
  for (std::uint64_t i = 0; i < 3; ++i) note_call(ring, event_of(*recorder, i));
  ring->entries[1].sequence = 0;
  const TraceFile trace = read_trace(*recorder);
  REQUIRE(trace.last_calls().last.size() == 2);
  CHECK(trace.last_calls().last[0].address == 2);
  CHECK(trace.last_calls().last[1].address == 0);
}

// Threads that make the first call of a process at once make a ring each, and all use the same one.
TEST_CASE("a ring that nobody used hides no calls, before the one in use or after it") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  recorder->add_call_ring();
  CallRingPayload* const ring = recorder->add_call_ring();
  recorder->add_call_ring();
  for (std::uint64_t i = 0; i < 3; ++i) note_call(ring, event_of(*recorder, i));
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.last_calls().recorded == 3);
  CHECK(trace.last_calls().last.size() == 3);
}

TEST_CASE("kinds of a later version are passed over") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  DeviceCallPayload fixed{};
  fixed.call = recorder->intern_string("cuTomorrow");
  fixed.kind = static_cast<DeviceCallKind>(200);
  recorder->add_device_call(fixed);
  DeviceMemoryPayload memory{};
  memory.space = static_cast<MemorySpace>(200);
  recorder->add_device_memory(memory);
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.device_calls().empty());
  CHECK(trace.device_memory().empty());
  CHECK(trace.damage().empty());
}

TEST_CASE("a full file takes no counters, and says so") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path(), kMinFileSize);
  while (recorder->add_call_ring() != nullptr) {
  }
  count_call(nullptr, {});
  count_allocated(nullptr, 1, 0);
  count_released(nullptr, 1);
  note_call(nullptr, {});
  CHECK(read_trace(*recorder).lost_events() == 1);
}

}  // namespace
}  // namespace devsan::trace::testing
