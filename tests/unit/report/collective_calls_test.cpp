// The last collectives of processes, as JSON and for Perfetto.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <numeric>

#include "report/findings/collective_logs.h"
#include "report/render/render_json.h"
#include "report/render/render_perfetto.h"

namespace devsan::report {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kSecond = 1'000'000'000;

SharedRanks ranks_up_to(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_shared<const std::vector<int>>(std::move(ranks));
}

CollectiveCall call(SharedRanks ranks, std::int64_t entered_s = 10, std::int64_t finished_s = 12) {
  CollectiveCall one;
  one.name = "all_reduce";
  one.group = "0";
  one.group_ranks = std::move(ranks);
  one.sequence = 1;
  one.state = "finished";
  one.entered_ns = entered_s * kSecond;
  one.finished_ns = finished_s * kSecond;
  return one;
}

Json shown(CollectiveCall one) {
  Report report;
  Process process;
  process.collectives = 1;
  process.last_collectives = {std::move(one)};
  report.run.processes.push_back(std::move(process));
  return Json::parse(render_json(report))["run"]["processes"][0]["collectives"]["last"][0];
}

TEST_CASE("a collective names the ranks of its group, and of a large one how many they are") {
  CHECK(shown(call(ranks_up_to(64)))["group_ranks"].size() == 64);
  CHECK_FALSE(shown(call(ranks_up_to(64))).contains("group_size"));
  CHECK(shown(call(ranks_up_to(65)))["group_ranks"].empty());
  CHECK(shown(call(ranks_up_to(65)))["group_size"] == 65);
  CHECK(shown(call(nullptr))["group_ranks"].empty());
  CHECK_FALSE(shown(call(nullptr)).contains("group_size"));
}

TEST_CASE("processes share the list of a group's ranks") {
  RankLists lists;
  std::vector<CollectiveCall> one = {call(ranks_up_to(3)), call(ranks_up_to(4)), call(nullptr)};
  std::vector<CollectiveCall> other = {call(ranks_up_to(3))};
  lists.share(one);
  lists.share(other);
  CHECK(one[0].group_ranks == other[0].group_ranks);
  CHECK(one[1].group_ranks != other[0].group_ranks);
  CHECK(one[2].group_ranks == nullptr);
}

TEST_CASE("Perfetto shows several hosts by one clock, and an arrow from the rank that entered last") {
  Report report;
  Run& run = report.run;
  run.clocks.offsets["b"] = -50 * kSecond;
  const SharedRanks both = ranks_up_to(2);
  for (int rank = 0; rank < 2; ++rank) {
    const std::int64_t ahead = rank == 0 ? 50 : 0;  // of rank 0, on host b: it enters a second before the other
    Process process;
    process.rank = rank;
    process.pid = 7;
    process.host = rank == 0 ? "b" : "a";
    process.start_ns = (1 + ahead) * kSecond;
    process.last_collectives = {call(both, (rank == 0 ? 9 : 10) + ahead, 12 + ahead)};
    run.processes.push_back(std::move(process));
  }
  run.start_ns = kSecond;
  const Json events = Json::parse(render_perfetto(report))["traceEvents"];
  const auto event = [&](std::string_view phase, int process) {
    const auto found =
        std::ranges::find_if(events, [&](const Json& one) { return one["ph"] == phase && one["pid"] == process; });
    REQUIRE(found != events.end());
    return *found;
  };
  CHECK(event("X", 1)["ts"] == 8e6);
  CHECK(event("X", 2)["ts"] == 9e6);
  CHECK(event("s", 2)["ts"] == 9e6);
  CHECK(event("f", 1)["ts"] == Approx(11e6));
}

TEST_CASE("Perfetto marks a finding in the process that lived when it was made, of several with one pid") {
  Report report;
  for (const std::int64_t start : {1, 100}) {
    Process process;
    process.rank = 0;
    process.pid = 7;
    process.start_ns = start * kSecond;
    report.run.processes.push_back(std::move(process));
  }
  Finding finding;
  finding.pid = 7;
  finding.rank = 0;
  finding.time_ns = GENERATE(50, 150) * kSecond;
  report.findings = {finding};
  const Json events = Json::parse(render_perfetto(report))["traceEvents"];
  const auto mark = std::ranges::find_if(events, [](const Json& one) { return one["ph"] == "i"; });
  REQUIRE(mark != events.end());
  CHECK((*mark)["pid"] == (finding.time_ns < 100 * kSecond ? 1 : 2));
}

}  // namespace
}  // namespace devsan::report
