#include "launch/verdict.h"

#include <catch2/catch.hpp>

#include "launch/run.h"
#include "trace/not_simulated.h"

using namespace devsan::launch;
using namespace devsan;

namespace {

report::Process process_that_made(std::uint32_t optimizer_steps, trace::CloseMark close) {
  report::Process process;
  process.steps = optimizer_steps + 1;
  process.optimizer_steps = optimizer_steps;
  process.close = close;
  return process;
}

report::Report rehearsed(std::uint32_t optimizer_steps = 2, trace::CloseMark close = trace::CloseMark::stopped) {
  report::Report report;
  report.run.processes = {process_that_made(optimizer_steps, close)};
  report.run.optimizer_steps = optimizer_steps;
  report.run.steps = optimizer_steps + 1;
  return report;
}

report::Finding finding_of(report::Kind kind, report::Severity severity = report::Severity::error) {
  report::Finding finding;
  finding.kind = kind;
  finding.severity = severity;
  return finding;
}

const Rehearsal kTwoSteps{2, 1, std::uint64_t{80} << 30};

bool says(const Verdict& verdict, std::string_view words) {
  for (const std::string& line : verdict.lines) {
    if (line.find(words) != std::string::npos) return true;
  }
  return false;
}

TEST_CASE("a rehearsal without a finding is ok, and says what ran") {
  const Verdict verdict = verdict_on(rehearsed(), kTwoSteps, 0, "");
  CHECK(verdict.status == 0);
  CHECK(verdict.lines ==
        std::vector<std::string>{"ok", "1 process made 2 optimizer steps on 1 simulated device of 80.0 GiB"});
}

TEST_CASE("findings that the program did not handle decide, and notes do not") {
  report::Report report = rehearsed();
  report.findings = {finding_of(report::Kind::mixed_operands, report::Severity::note)};
  CHECK(verdict_on(report, kTwoSteps, 0, "").status == 0);
  report.findings.push_back(finding_of(report::Kind::device_mismatch));
  report.findings.back().handled = true;
  CHECK(verdict_on(report, kTwoSteps, 0, "").status == 0);
  report.findings.push_back(finding_of(report::Kind::device_mismatch));
  const Verdict verdict = verdict_on(report, kTwoSteps, 1, "");
  CHECK(verdict.status == kFindingStatus);
  CHECK(verdict.lines.front() == "1 finding");
}

TEST_CASE("an error of devsan doctor decides like a finding") {
  Rehearsal sick = kTwoSteps;
  sick.errors_of_doctor = 2;
  const Verdict verdict = verdict_on(rehearsed(), sick, 0, "");
  CHECK(verdict.status == kFindingStatus);
  CHECK(verdict.lines.front() == "0 findings, 2 errors of devsan doctor");
}

TEST_CASE("what the simulation does not cover is named, and decides where the command failed") {
  report::Report report = rehearsed(0, trace::CloseMark::exited);
  report.run.notices = {{std::string(trace::kNotSimulated) + "the operator aten::x", 1, 0, 1}};
  const Verdict failed = verdict_on(report, kTwoSteps, 1, "");
  CHECK(failed.status == kNotSimulatedStatus);
  CHECK(says(failed, "simulated devices do not cover the operator aten::x"));
  CHECK(verdict_on(report, kTwoSteps, 0, "").status == 0);
}

TEST_CASE("a lack of memory decides against the simulation only where real devices would have more") {
  report::Report report = rehearsed(0, trace::CloseMark::exited);
  report.findings = {finding_of(report::Kind::out_of_memory)};
  CHECK(verdict_on(report, kTwoSteps, 1, "").status == kFindingStatus);
  Rehearsal small = kTwoSteps;
  small.memory_is_hosts = true;
  const Verdict verdict = verdict_on(report, small, 1, "");
  CHECK(verdict.status == kNotSimulatedStatus);
  CHECK(says(verdict, "what this machine can spare"));
  report.findings = {finding_of(report::Kind::abnormal_exit)};
  report.findings[0].last_moments.emplace().ending.named_by_kernel = true;
  CHECK(verdict_on(report, kTwoSteps, 137, "").status == kNotSimulatedStatus);
}

TEST_CASE("a command that fails by itself keeps its status") {
  const Verdict verdict = verdict_on(rehearsed(0, trace::CloseMark::exited), kTwoSteps, 3, "");
  CHECK(verdict.status == 3);
  CHECK(says(verdict, "the command failed with status 3"));
}

TEST_CASE("a launcher that fails after its ranks were stopped does not count") {
  report::Report report = rehearsed();
  report.run.processes.push_back(process_that_made(0, trace::CloseMark::exited));
  report.run.processes.back().steps = 0;
  const Verdict verdict = verdict_on(report, kTwoSteps, 1, "");
  CHECK(verdict.status == 0);
  CHECK(says(verdict, "ended with status 1 after its ranks had been stopped"));
  report.run.processes.push_back(process_that_made(1, trace::CloseMark::exited));
  CHECK(verdict_on(report, kTwoSteps, 1, "").status == 1);
}

TEST_CASE("a rule that is broken is named once, and a built-in expectation is none") {
  report::Finding broken = finding_of(report::Kind::wrong_placement, report::Severity::warning);
  broken.expectation = report::Expectation{"tail", "model.1 on cuda:1", "/home/ann/rules.toml", 4, "cuda:1", "cpu", 1};
  report::Finding own = broken;
  own.expectation->file.clear();
  report::Report report = rehearsed();
  report.findings = {broken, broken, own};
  const Verdict verdict = verdict_on(report, kTwoSteps, 0, "");
  CHECK(verdict.status == kFindingStatus);
  CHECK(verdict.lines[0] == "3 findings");
  CHECK(verdict.lines[1] == "broken rule at /home/ann/rules.toml:4: model.1 on cuda:1 (tail)");
  CHECK(verdict.lines.size() == 3);
}

TEST_CASE("a command in which no torch ran is no rehearsal") {
  const Verdict verdict = verdict_on({}, kTwoSteps, 0, "/usr/bin/python3 has no torch");
  CHECK(verdict.status == kNotSimulatedStatus);
  CHECK(says(verdict, "has no torch"));
  CHECK(verdict_on({}, kTwoSteps, 127, "").status == 127);
}

TEST_CASE("a run that was too short, or stopped without an optimizer, says so") {
  CHECK(says(verdict_on(rehearsed(1, trace::CloseMark::exited), kTwoSteps, 0, ""),
             "ended by itself before 2 optimizer steps"));
  report::Report report = rehearsed(0, trace::CloseMark::stopped);
  report.run.steps = report.run.processes[0].steps = 65;
  CHECK(says(verdict_on(report, kTwoSteps, 0, ""), "no step of an optimizer was seen"));
}

}  // namespace
