// Which ends of processes are findings, and how they and the memory before are shown.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "report/findings/build_endings.h"
#include "report/render/memory_table.h"
#include "report/render/render_terminal.h"
#include "report/render/summary.h"

namespace devsan::report {
namespace {

using Catch::Matchers::Contains;
using trace::CloseMark;

LastOperator operator_at(const char* op, int line, std::uint32_t step) {
  LastOperator last;
  last.op = op;
  last.at.file = "/srv/train.py";
  last.at.line = line;
  last.at.function = "train";
  last.step = step;
  return last;
}

Process process_that(CloseMark close, std::optional<Ending> ending, std::optional<bool> ended = true) {
  Process process;
  process.pid = 100;
  process.parent_pid = 1;
  process.host = "host";
  process.close = close;
  process.ending = ending;
  process.ended = ended;
  process.operators = 5;
  process.steps = 8;
  Thread main{100, "MainThread", 5, {}};
  main.last = {operator_at("aten::mm", 12, 7), operator_at("aten::add", 11, 7)};
  process.threads = {Thread{101, "pt_autograd_0", 9, {operator_at("aten::mul", 13, 6)}}, main};
  return process;
}

Ending by_signal(int signal, std::optional<std::uint32_t> oom_kills = {}) {
  return {signal, std::nullopt, oom_kills, false};
}
Ending by_status(int status) {
  return {0, status, std::nullopt, false};
}

std::vector<Finding> endings_of(Process process) {
  return build_endings({std::move(process)});
}

TEST_CASE("a process that a signal tore down is an error, at its last operator") {
  for (const int signal : {SIGKILL, SIGSEGV, SIGABRT, SIGBUS}) {
    const std::vector<Finding> findings = endings_of(process_that(CloseMark::open, by_signal(signal)));
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].kind == Kind::abnormal_exit);
    CHECK(findings[0].severity == Severity::error);
    CHECK(findings[0].op == "aten::mm");
    REQUIRE(findings[0].where);
    CHECK(findings[0].where->line == 12);
    CHECK(findings[0].step == 7);
    CHECK_THAT(ending_text(findings[0]), Contains(signal_name(signal)) && !Contains("memory"));
  }
}

TEST_CASE("the kernel is only named on its own evidence") {
  const auto text = [](const Ending& ending) {
    return ending_text(endings_of(process_that(CloseMark::open, ending)).at(0));
  };
  CHECK_THAT(text(by_signal(SIGKILL, 1)), Contains("the kernel killed one process") && Contains("for memory"));
  CHECK_THAT(text(by_signal(SIGKILL, 0)), !Contains("kernel"));
  CHECK_THAT(text(by_signal(SIGKILL)), !Contains("kernel"));
  CHECK_THAT(text(by_signal(SIGSEGV, 1)), !Contains("kernel"));
  CHECK_THAT(text({SIGKILL, std::nullopt, std::nullopt, true}), Contains("killed by the kernel for memory"));
  CHECK_THAT(text({SIGSEGV, std::nullopt, 1, true}), !Contains("kernel"));
}

TEST_CASE("ends in good order are no findings") {
  CHECK(endings_of(process_that(CloseMark::exited, by_status(0))).empty());
  CHECK(endings_of(process_that(CloseMark::exited, by_status(1))).empty());
  CHECK(endings_of(process_that(CloseMark::exited, std::nullopt)).empty());
  CHECK(endings_of(process_that(CloseMark::quick_exited, by_status(0))).empty());
  CHECK(endings_of(process_that(CloseMark::quick_exited, std::nullopt)).empty());
  CHECK(endings_of(process_that(CloseMark::executed, by_signal(SIGKILL))).empty());
  CHECK(endings_of(process_that(CloseMark::halted, by_status(66))).empty());
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGUSR1}) {
    CHECK(endings_of(process_that(CloseMark::open, by_signal(signal))).empty());
  }
  // A launcher that saw it exit knows better than a mark that is missing.
  CHECK(endings_of(process_that(CloseMark::open, by_status(0))).empty());
}

TEST_CASE("a status given past the exit handlers is a warning") {
  const std::vector<Finding> findings = endings_of(process_that(CloseMark::quick_exited, by_status(3)));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::warning);
  CHECK_THAT(ending_text(findings[0]), Contains("status 3"));
}

TEST_CASE("where nobody was told, only the file speaks") {
  const std::vector<Finding> findings = endings_of(process_that(CloseMark::open, std::nullopt));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::warning);
  CHECK_THAT(ending_text(findings[0]), Contains("did not exit by itself"));
  CHECK(endings_of(process_that(CloseMark::open, std::nullopt, false)).empty());         // it runs
  CHECK(endings_of(process_that(CloseMark::open, std::nullopt, std::nullopt)).empty());  // elsewhere, perhaps
}

TEST_CASE("a process that was ended after another rank had failed is no finding, and the summary says so") {
  Process process = process_that(CloseMark::open, std::nullopt);
  process.rank = 0;
  process.ended_after = 3;
  CHECK(endings_of(process).empty());
  Report report;
  report.run.processes = {process, process};
  report.run.processes[1].rank = 1;
  CHECK_THAT(summary(report, {}), Contains("ranks 0, 1 were ended after rank 3 had failed"));
  CHECK_THAT(summary(report, {}), !Contains("did not exit by itself"));
  report.run.processes[1].ended_after = std::nullopt;
  report.run.processes[1].ending = by_signal(SIGTERM);
  CHECK_THAT(summary(report, {}), Contains("rank 0 was ended after rank 3 had failed"));
  CHECK_THAT(summary(report, {}), Contains("rank 1 (pid 100) was ended by SIGTERM"));
  report.run.processes[1].uncaught.emplace().type = "ValueError";
  report.run.first_failure.emplace().rank = 1;
  CHECK_THAT(summary(report, {}), !Contains("(pid 100)"));
}

TEST_CASE("a worker's end counts only when its parent was told of a signal") {
  Process parent = process_that(CloseMark::exited, by_status(0));
  Process worker = process_that(CloseMark::open, std::nullopt);
  worker.pid = 200;
  worker.parent_pid = parent.pid;
  CHECK(build_endings({parent, worker}).empty());
  worker.ending = by_signal(SIGTERM);
  CHECK(build_endings({parent, worker}).empty());
  worker.ending = by_signal(SIGKILL);
  CHECK(build_endings({parent, worker}).size() == 1);
  worker.close = CloseMark::quick_exited;
  worker.ending = by_status(1);
  CHECK(build_endings({parent, worker}).empty());
}

TEST_CASE("the end of a process is shown with its last operators and its memory") {
  Process process = process_that(CloseMark::open, by_signal(SIGKILL));
  process.memory.push_back({"", {{0, 100 << 20, 0, 0}, {7, 900 << 20, 1 << 20, 0}}, {7, 900 << 20, 1 << 20, 0}});
  const std::string text = render_finding(endings_of(process).at(0), {});
  CHECK_THAT(text, Contains("error[abnormal-exit] pid 100 was ended by SIGKILL"));
  CHECK_THAT(text, Contains("aten::mm at train.py:12, step 7") && Contains("pt_autograd_0"));
  CHECK_THAT(text, Contains("host") && Contains("900"));
  CHECK(text.find("MainThread") < text.find("pt_autograd_0"));
}

TEST_CASE("a curve is as high as the most that was in use") {
  std::vector<MemoryPoint> points;
  for (std::uint32_t i = 0; i < 80; ++i) points.push_back({i, i == 41 ? 800u : i, 0, 0});
  CHECK(sparkline(points, 8) == "▁▁▁▁█▁▁▁");
  CHECK(sparkline({{0, 5, 0, 0}}, 8) == "█");
  CHECK(sparkline({{0, 0, 0, 0}, {1, 0, 0, 0}}, 8) == "▁▁");
  CHECK(sparkline({}, 8).empty());
}

TEST_CASE("the table of memory names the devices and leaves out what nobody can read at once") {
  CHECK(memory_table({}, {}).empty());
  Run run;
  for (std::uint32_t rank = 0; rank < 6; ++rank) {
    Process process = process_that(CloseMark::exited, by_status(0));
    process.rank = static_cast<int>(rank);
    process.memory.push_back({"", {{0, 1 << 20, 0, 0}}, {0, 1 << 20, 0, 0}});
    process.memory.push_back({"cuda:0", {{0, 0, 2 << 20, 0}, {9, 1 << 20, 2 << 20, 0}}, {4, 3 << 20, 0, 0}});
    run.processes.push_back(process);
  }
  std::string text;
  std::vector<const Process*> all;
  for (const Process& process : run.processes) all.push_back(&process);
  for (const std::string& line : memory_table(all, {})) text += line + "\n";
  CHECK_THAT(text, Contains("memory of rank 0 (pid 100)") && Contains("rank 3") && !Contains("rank 4"));
  CHECK_THAT(text, Contains("and of 2 more processes"));
  CHECK_THAT(text, Contains("cuda:0") && Contains("3.0 MiB"));
}

}  // namespace
}  // namespace devsan::report
