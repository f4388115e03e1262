// Many threads at once; worth most under ThreadSanitizer.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <thread>

#include "sample.h"

namespace devsan::trace::testing {
namespace {

constexpr int kThreads = 4;

template <class Body>
void in_threads(Body&& body) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back(body, thread);
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("threads that intern the same things get the same ids") {
  constexpr int kTexts = 500;
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  std::vector<std::vector<StringId>> strings(kThreads);
  std::vector<std::vector<LineageId>> nodes(kThreads);
  in_threads([&](int thread) {
    for (int i = 0; i < kTexts; ++i) {
      const StringId text = recorder->intern_string("text " + std::to_string(i));
      const Position here{text, text, i, i, 0, 0};
      const SiteId site = recorder->add_site({here, here});
      const OperatorId op = recorder->add_operator("aten::op" + std::to_string(i % 50));
      const DeviceSlot device = recorder->intern_device("cuda:" + std::to_string(i % 8));
      strings[static_cast<std::size_t>(thread)].push_back(text);
      nodes[static_cast<std::size_t>(thread)].push_back(
          recorder->add_lineage({LineageId::none, site, op, device, How::created, 0, {}}));
    }
  });
  for (const auto& other : strings) CHECK(other == strings[0]);
  for (const auto& other : nodes) CHECK(other == nodes[0]);
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  for (int i = 0; i < kTexts; ++i) {
    const auto node = trace.lineage(nodes[0][static_cast<std::size_t>(i)]);
    REQUIRE(node);
    CHECK(trace.string(trace.site(node->site)->user.file) == "text " + std::to_string(i));
    CHECK(trace.operator_name(node->op) == "aten::op" + std::to_string(i % 50));
    CHECK(trace.device_name(node->device) == "cuda:" + std::to_string(i % 8));
  }
}

TEST_CASE("meetings of many threads are all there, whole, and counted together when changed") {
  constexpr int kMeetings = 400;
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  MeetingPayload* const shared = add_numbered_meeting(*recorder, kThreads * kMeetings);
  in_threads([&](int thread) {
    for (int i = 0; i < kMeetings; ++i) {
      add_numbered_meeting(*recorder, i * kThreads + thread);
      Recorder::bump_meeting(shared, static_cast<std::uint32_t>(i));
      Recorder::set_meeting_flags(shared, 1u << thread);
      recorder->count_optimizer_step();
    }
  });
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  std::set<std::int64_t> found;
  for (const Meeting& meeting : trace.meetings()) found.insert(meeting.fixed.time_ns);
  CHECK(found.size() == kThreads * kMeetings + 1);
  CHECK(trace.meetings()[0].fixed.repeats == kThreads * kMeetings);
  CHECK(trace.meetings()[0].fixed.flags == (1u << kThreads) - 1);
  CHECK(trace.header().optimizer_steps == kThreads * kMeetings);
}

TEST_CASE("threads that ask for a ring at once get one each") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  std::vector<ThreadRing*> rings(kThreads);
  in_threads([&](int thread) {
    ThreadRing* const ring = recorder->acquire_ring(static_cast<std::uint32_t>(thread + 1), "worker");
    rings[static_cast<std::size_t>(thread)] = ring;
    for (std::uint32_t i = 0; ring != nullptr && i < 1000; ++i) {
      note_operator(*ring, OperatorId{1}, DeviceSlot{1}, SiteId{1}, i);
    }
  });
  CHECK(std::set(rings.begin(), rings.end()).size() == kThreads);
  const TraceFile trace = read_trace(*recorder);
  REQUIRE(trace.threads().size() == kThreads);
  for (const ThreadTail& thread : trace.threads()) CHECK(thread.last.at(0).step == 999);
}

TEST_CASE("a file can be read while it is written") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  std::atomic<bool> full{false};
  std::thread writer([&] {
    for (std::int64_t i = 0; add_numbered_meeting(*recorder, i) != nullptr; ++i) {
    }
    full = true;
  });
  std::size_t seen = 0;
  for (bool last = false; !last;) {
    last = full;
    const TraceFile trace = read_trace(*recorder);
    CHECK(trace.meetings().size() >= seen);
    seen = trace.meetings().size();
    for (const Meeting& meeting : trace.meetings()) {
      REQUIRE(trace.string(meeting.fixed.message) == "message " + std::to_string(meeting.fixed.time_ns));
    }
  }
  writer.join();
  CHECK(seen > 0);
}

}  // namespace
}  // namespace devsan::trace::testing
