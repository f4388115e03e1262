#include "report/findings/attempts.h"

#include <catch2/catch.hpp>

#include "report/findings/apart.h"

namespace devsan::report {
namespace {

Process process(int rank, std::uint32_t pid, std::uint32_t parent, std::int64_t start, std::int64_t end) {
  Process process;
  process.rank = rank;
  process.pid = pid;
  process.parent_pid = parent;
  process.host = "node-a";
  process.start_ns = start;
  process.ended_ns = end;
  process.operators = 1;
  process.steps = 5;
  return process;
}

std::vector<int> attempts_of(std::vector<Process> processes) {
  place_processes(processes, {});
  std::vector<int> attempts;
  for (const Process& process : processes) attempts.push_back(process.attempt.value_or(-1));
  return attempts;
}

TEST_CASE("Processes of a rank that follow each other are attempts, in the order of their beginnings") {
  CHECK(attempts_of({process(0, 12, 1, 30, 40), process(0, 11, 1, 10, 20), process(1, 13, 1, 10, 40)}) ==
        std::vector<int>{1, 0, -1});
}

TEST_CASE("A worker that was killed does not say when, and the next one is an attempt all the same") {
  CHECK(attempts_of({process(0, 11, 1, 10, 0), process(0, 12, 1, 30, 40)}) == std::vector<int>{0, 1});
}

TEST_CASE("A process that began beside one which still runs is no attempt of its own") {
  Process running = process(0, 11, 1, 10, 0);
  running.ended = false;
  CHECK(attempts_of({running, process(0, 12, 1, 30, 40)}) == std::vector<int>{-1, -1});
}

TEST_CASE("Children of a worker are of its attempt, whenever they began") {
  CHECK(attempts_of({process(0, 11, 1, 10, 20), process(0, 12, 1, 30, 60), process(0, 13, 12, 40, 41),
                     process(0, 14, 13, 50, 51)}) == std::vector<int>{0, 1, 1, 1});
}

TEST_CASE("A process beside a worker, whose parent has no trace, is no attempt of its own") {
  CHECK(attempts_of({process(0, 11, 1, 10, 60), process(0, 12, 99, 30, 40)}) == std::vector<int>{-1, -1});
}

TEST_CASE("What the launcher told counts more than times") {
  Process first = process(0, 11, 1, 10, 20);
  Process second = process(0, 12, 1, 30, 40);
  first.attempt = second.attempt = 2;
  CHECK(attempts_of({first, second, process(0, 13, 12, 31, 32)}) == std::vector<int>{2, 2, 2});
}

// Of two nodes with a worker each; the second one's worker fails twice, which only its own agent counts.
std::vector<Process> restarted_on_two_nodes() {
  std::vector<Process> processes;
  for (int attempt = 0; attempt < 3; ++attempt) {
    for (int rank = 0; rank < 2; ++rank) {
      const std::int64_t start = 100 * attempt + 10 - rank;
      processes.push_back(process(rank, static_cast<std::uint32_t>(100 + 10 * attempt + rank), 1, start, start + 50));
      processes.back().attempt = rank * attempt;
      processes.back().node = rank;
    }
  }
  return processes;
}

TEST_CASE("A restart that only one node's agent counted is an attempt on all nodes") {
  std::vector<Process> processes = restarted_on_two_nodes();
  CHECK(attempts_of(processes) == std::vector<int>{0, 0, 1, 1, 2, 2});
  SECTION("where a node's workers were killed, and none tells when they ended") {
    for (const std::size_t killed : {0, 2}) processes[killed].ended_ns = 0;
    CHECK(attempts_of(processes) == std::vector<int>{0, 0, 1, 1, 2, 2});
  }
  SECTION("and children go with their workers") {
    processes.push_back(process(0, 77, 120, 215, 216));
    processes.back().attempt = 0;
    CHECK(attempts_of(processes) == std::vector<int>{0, 0, 1, 1, 2, 2, 2});
  }
  SECTION("where the agents had counted before") {
    for (Process& process : processes) process.attempt = *process.attempt + 4;
    CHECK(attempts_of(processes) == std::vector<int>{4, 4, 5, 5, 6, 6});
  }
}

TEST_CASE("A node's clock that is ahead takes no worker into the next attempt") {
  std::vector<Process> processes = restarted_on_two_nodes();
  for (Process& process : processes) {
    if (process.rank != 1) continue;
    process.host = "node-b";
    process.start_ns += 60;
    process.ended_ns += 60;
  }
  place_processes(processes, HostClocks{{{"node-b", -60}}});
  for (std::size_t i = 0; i < processes.size(); ++i) CHECK(processes[i].attempt == static_cast<int>(i / 2));
}

TEST_CASE("Workers that are started again among more ranks, or on another node, are another attempt") {
  std::vector<Process> processes = {process(0, 11, 1, 10, 20), process(0, 12, 1, 30, 40), process(1, 13, 1, 29, 40)};
  for (Process& process : processes) process.attempt = 0;
  SECTION("among more ranks") {
    for (std::size_t i = 0; i < processes.size(); ++i) processes[i].world_size = i == 0 ? 1 : 2;
  }
  SECTION("on another node") {
    processes[1].host = "node-b";
  }
  CHECK(attempts_of(processes) == std::vector<int>{0, 1, 1});
}

TEST_CASE("Another command of the same rank is no attempt of the first") {
  Process second = process(0, 12, 1, 30, 40);
  second.command = "python evaluate.py";
  CHECK(attempts_of({process(0, 11, 1, 10, 20), second}) == std::vector<int>{-1, -1});
}

TEST_CASE("Nodes are numbered by the lowest rank on them") {
  std::vector<Process> processes = {process(3, 11, 1, 1, 2), process(0, 12, 1, 1, 2), process(2, 13, 1, 1, 2)};
  processes[1].host = "node-z";
  processes.push_back(process(0, 9, 1, 1, 2));
  processes.back().rank.reset();
  place_processes(processes, {});
  CHECK(processes[0].node == 1);
  CHECK(processes[1].node == 0);
  CHECK(processes[2].node == 1);
  CHECK_FALSE(processes[3].node);
}

TEST_CASE("Other ranks are those that ran as far; what only they have in common is told") {
  Report report;
  for (int rank = 0; rank < 4; ++rank) {
    report.run.processes.push_back(process(rank, 10 + static_cast<std::uint32_t>(rank), 1, 1, 2));
    report.run.processes.back().info["torch"] = rank == 3 ? "2.12.0" : "2.13.0";
  }
  report.run.processes[1].steps = 2;
  Finding finding;
  finding.rank = 3;
  finding.ranks = {3};
  finding.step = 2;
  report.findings = {finding};
  set_apart(report, CollectiveLogs{}, {});
  CHECK(report.findings[0].other_ranks == std::vector<int>{0, 2});
  REQUIRE(report.findings[0].differs.size() == 1);
  CHECK(report.findings[0].differs[0].what == "torch");
  CHECK(report.findings[0].differs[0].here == "2.12.0");
  CHECK(report.findings[0].differs[0].there == "2.13.0");
}

}  // namespace
}  // namespace devsan::report
