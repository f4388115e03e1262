// What the timeline of the page has of collectives and steps, and the trace for Perfetto of the latter.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "report/render/page_data.h"
#include "report/render/render_perfetto.h"

namespace devsan::report {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

CollectiveCall call(std::string_view state, std::int64_t entered, std::int64_t wait, std::int64_t finished) {
  CollectiveCall one;
  one.name = "all_reduce";
  one.state = state;
  one.entered_ns = entered;
  one.wait_ns = wait;
  one.finished_ns = finished;
  return one;
}

// Begin and length in microseconds of the waits of a process that lived from the first to the ninth second.
Json waits_of(CollectiveCall one, std::int64_t ended = 9 * kSecond) {
  Run run;
  run.start_ns = kSecond;
  run.last_ns = 10 * kSecond;
  Process process;
  process.start_ns = kSecond;
  process.ended_ns = ended;
  process.last_collectives = {std::move(one)};
  run.processes.push_back(std::move(process));
  const Json waits = page_timeline(run)["waits"][0];
  return waits.is_null() ? waits : Json{waits["begin"][0], waits["length"][0]};
}

TEST_CASE("a wait in a collective that ended lasts from its begin to the end of the collective") {
  CHECK(waits_of(call("finished", 2 * kSecond, 3 * kSecond, 5 * kSecond)) == Json{2'000'000, 2'000'000});
}

TEST_CASE("a collective that ended well, and that nobody waited for, is no wait") {
  CHECK(waits_of(call("finished", 2 * kSecond, 0, 5 * kSecond)).is_null());
}

TEST_CASE("a collective that failed was waited for since it was entered, by whomever") {
  CHECK(waits_of(call("failed", 2 * kSecond, 0, 5 * kSecond)) == Json{1'000'000, 3'000'000});
}

TEST_CASE("a collective that never ended is waited for as long as the process lives") {
  CHECK(waits_of(call("entered", 2 * kSecond, 0, 0)) == Json{1'000'000, 7'000'000});
  CHECK(waits_of(call("entered", 2 * kSecond, 0, 0), 0) == Json{1'000'000, 8'000'000});
}

// A process with two steps of 10 s, of which the second has not ended; the run began a second before.
Run with_steps() {
  Run run;
  run.start_ns = kSecond;
  Process process;
  process.start_ns = kSecond;
  process.step_times.steps = {
      {4, 2 * kSecond, 1'000'000'000, 2'000'000'000, 500'000'000, 500'000'000, 2'000'000'000, 4'000'000'000},
      {5, 12 * kSecond, 1'000'000'000}};
  process.step_times.data_is_told = true;
  run.processes.push_back(std::move(process));
  return run;
}

TEST_CASE("waits for data are a column of the page, and none where the process has told of none") {
  Run run = with_steps();
  CHECK(page_timeline(run)["processes"][0]["data"] == Json{4'000'000, 0});
  run.processes[0].step_times.data_is_told = false;
  CHECK(page_timeline(run)["processes"][0]["data"].is_null());
}

TEST_CASE("a step that has not ended is as long as up to the error of its process, in the phase that it was in") {
  Run run = with_steps();
  const auto last_of = [&](const char* phase) { return page_timeline(run)["processes"][0][phase][1].get<int>(); };
  run.processes[0].first_error_ns = 16 * kSecond;
  CHECK(last_of("forward") == 1'000'000);
  CHECK(last_of("backward") == 3'000'000);
  run.processes[0].step_times.steps[1].forward_ns = 0;
  CHECK(last_of("forward") == 4'000'000);
  CHECK(last_of("backward") == 0);
  run.processes[0].first_error_ns = 11 * kSecond;
  CHECK(last_of("forward") == 0);
}

// The first of so many that a page has room for 32 steps and 24 points of each.
Run of_many_processes() {
  Run run = with_steps();
  Process& process = run.processes[0];
  process.step_times.steps.clear();
  process.memory.resize(1);
  MemoryCurve& curve = process.memory[0];
  for (std::uint32_t i = 0; i < 256; ++i) {
    const std::int64_t time = kSecond * (1 + i);
    process.step_times.steps.push_back({i, time, i == 101u ? 900'000'000u : 100'000'000u});
    curve.points.push_back({i, i == 101u ? 500u : 10u, 20, time});
  }
  curve.peak = curve.points[101];
  Process other = with_steps().processes[0];
  other.memory = {{"", {{0, 10, 20, kSecond}}, {0, 10, 20, kSecond}}};
  run.processes.resize(6'000, other);
  return run;
}

TEST_CASE("of many processes the page has some of the steps, the longest and the last among them") {
  const Json steps = page_timeline(of_many_processes())["processes"][0];
  CHECK(steps["step"].size() < 40);
  CHECK(std::ranges::count(steps["step"], Json(101)) == 1);
  CHECK(std::ranges::count(steps["forward"], Json(900'000)) == 1);
  CHECK(std::ranges::is_sorted(steps["step"]));
  CHECK(steps["step"].back() == 255);
}

TEST_CASE("of many processes the page has some of the points of a curve, its peak and the last among them") {
  Run run = of_many_processes();
  const auto check = [&] {
    const Json curve = page_memory(run)["processes"][0][0];
    CHECK(curve["step"].size() < 40);
    CHECK(std::ranges::count(curve["used"], Json(500)) == 1);
    CHECK(std::ranges::is_sorted(curve["time"]));
    CHECK(curve["step"].back() == 255);
  };
  check();
  // As a report of thousands has it: without the point that is the peak.
  std::erase_if(run.processes[0].memory[0].points, [](const MemoryPoint& point) { return point.step == 101; });
  check();
}

TEST_CASE("a trace for Perfetto has steps and phases when they were, and operators within their step") {
  Report report;
  report.run = with_steps();
  Thread thread;
  thread.tid = 7;
  thread.last = {{"aten::relu", {}, 5}, {"aten::mm", {}, 4}};
  report.run.processes[0].threads.push_back(thread);
  const Json events = Json::parse(render_perfetto(report))["traceEvents"];
  const auto slice = [&](std::string_view name) {
    const auto found =
        std::ranges::find_if(events, [&](const Json& event) { return event["ph"] == "X" && event["name"] == name; });
    REQUIRE(found != events.end());
    const double begin = (*found)["ts"];
    return std::pair(begin / 1e6, (begin + double((*found)["dur"])) / 1e6);
  };
  CHECK(slice("step 4") == std::pair(1.0, 11.0));
  CHECK(slice("step 5") == std::pair(11.0, 12.0));
  CHECK(slice("backward") == std::pair(2.0, 4.0));
  CHECK(slice("optimizer") == std::pair(4.5, 5.0));
  CHECK(slice("data") == std::pair(7.0, 11.0));
  CHECK(slice("aten::mm").second == Approx(11.0));
  CHECK(slice("aten::relu").second == Approx(12.0));
}

}  // namespace
}  // namespace devsan::report
