#include "report/model/merge.h"

#include <catch2/catch.hpp>

#include "report/findings/collect.h"
#include "samples.h"
#include "trace_builder.h"

namespace devsan::report {
namespace {

Finding at(Finding finding, int rank, std::uint32_t step) {
  finding.rank = rank;
  finding.ranks = {rank};
  finding.step = step;
  return finding;
}

TEST_CASE("Equal findings of several ranks become one, told by the earliest") {
  FindingMerger merger;
  merger.add(at(samples::plain_attribute(), 2, 9));
  merger.add(at(samples::plain_attribute(), 0, 5));
  merger.add(at(samples::plain_attribute(), 1, 5));
  const auto findings = merger.take();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].ranks == std::vector<int>{0, 1, 2});
  CHECK(findings[0].rank == 0);
  CHECK(findings[0].step == 5);
  CHECK(findings[0].count == 3);
}

TEST_CASE("Neither devices nor steps nor processes tell findings apart") {
  Finding other = at(samples::plain_attribute(), 1, 3);
  other.operands[0].device = "cuda:1";
  other.message = "found at least two devices, cuda:1 and cpu!";
  other.pid = 1;
  CHECK(identity_of(other) == samples::plain_attribute().id);
}

TEST_CASE("Place, operator, kind and the odd operand's origin tell findings apart") {
  const Finding original = samples::plain_attribute();
  const auto changed = [&](auto change) {
    Finding finding = original;
    change(finding);
    return identity_of(finding);
  };
  CHECK(changed([](Finding& f) { f.where->line = 24; }) != original.id);
  CHECK(changed([](Finding& f) { f.op = "aten::sub.Tensor"; }) != original.id);
  CHECK(changed([](Finding& f) { f.kind = Kind::mixed_operands; }) != original.id);
  CHECK(changed([](Finding& f) { f.forward = std::vector<Frame>{*f.where}; }) != original.id);
  CHECK(changed([](Finding& f) { f.operands[1].lineage.back().at.line = 2; }) != original.id);
}

TEST_CASE("An id is twelve hexadecimal digits") {
  const std::string id = samples::plain_attribute().id;
  CHECK(id.size() == 12);
  CHECK(id.find_first_not_of("0123456789abcdef") == std::string::npos);
}

TEST_CASE("A finding that one rank handled and another did not is unhandled") {
  Finding handled = at(samples::plain_attribute(), 0, 1);
  handled.handled = true;
  handled.severity = Severity::warning;
  FindingMerger merger;
  merger.add(handled);
  merger.add(at(samples::plain_attribute(), 1, 8));
  const auto findings = merger.take();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::error);
  CHECK_FALSE(findings[0].handled);
  CHECK(findings[0].rank == 1);
}

TEST_CASE("Errors come before notes, early findings before late ones") {
  FindingMerger merger;
  merger.add(samples::allowed_scalar());
  merger.add(at(samples::offloaded_gradient(), 0, 17));
  merger.add(at(samples::plain_attribute(), 0, 2));
  const auto findings = merger.take();
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].step == 2);
  CHECK(findings[1].step == 17);
  CHECK(findings[2].severity == Severity::note);
}

TEST_CASE("Traces of a directory are read as one run") {
  const TemporaryDirectory directory;
  for (const int rank : {1, 0}) {
    TraceBuilder builder(directory.path(), rank);
    builder.meeting({.frames = {{"/srv/app/train.py", 5, "main"}},
                     .operands = {{"self", "cuda:0", {2}}, {"other", "cpu", {2}}},
                     .step = 1});
    builder.recorder().add_run_info("command", rank == 0 ? "torchrun train.py" : "python train.py");
    builder.recorder().add_run_info("torch", "2.13.0");
    builder.recorder().add_notice("One of many.");
    builder.recorder().set_step(6);
    builder.recorder().count_optimizer_step();
    builder.recorder().close(trace::CloseMark::exited);
  }
  const std::filesystem::path paths[] = {directory.path()};
  const Reading reading = read_traces(paths);
  CHECK(reading.complaints.empty());
  CHECK(reading.readable == 2);
  const Run& run = reading.report.run;
  REQUIRE(run.processes.size() == 2);
  CHECK(run.processes[0].rank == 0);
  CHECK(run.processes[0].close == trace::CloseMark::exited);
  CHECK(run.steps == 7);
  CHECK(run.optimizer_steps == 1);
  CHECK(run.versions.at("torch") == "2.13.0");
  REQUIRE(run.notices.size() == 1);
  CHECK(run.notices[0].count == 2);
  REQUIRE(reading.report.findings.size() == 1);
  CHECK(reading.report.findings[0].ranks == std::vector<int>{0, 1});
  CHECK(reading.report.findings[0].count == 2);
}

TEST_CASE("A trace named twice counts once") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  const std::filesystem::path paths[] = {directory.path(), builder.file(), builder.file()};
  CHECK(read_traces(paths).readable == 1);
}

TEST_CASE("The last operators of a thread are told newest first, with place and step") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  auto& recorder = builder.recorder();
  trace::ThreadRing* ring = recorder.acquire_ring(11, "worker");
  REQUIRE(ring != nullptr);
  for (std::uint32_t i = 0; i < 3; ++i) {
    ring->entries[i] = {recorder.add_operator("aten::mul.Tensor"),
                        trace::DeviceSlot::none,
                        0,
                        builder.site({"/srv/app/train.py", static_cast<int>(10 + i), "main"}),
                        i,
                        i};
    ring->next = i + 1;
  }
  const std::filesystem::path paths[] = {directory.path()};
  const Report report = read_traces(paths).report;
  REQUIRE(report.run.processes.size() == 1);
  REQUIRE(report.run.processes[0].threads.size() == 1);
  const Thread& thread = report.run.processes[0].threads[0];
  CHECK(thread.tid == 11);
  CHECK(thread.name == "worker");
  CHECK(thread.operators == 3);
  REQUIRE(thread.last.size() == 3);
  CHECK(thread.last[0].at.line == 12);
  CHECK(thread.last[0].op == "aten::mul.Tensor");
  CHECK(thread.last[0].step == 2);
  CHECK(thread.last[2].at.line == 10);
}

}  // namespace
}  // namespace devsan::report
