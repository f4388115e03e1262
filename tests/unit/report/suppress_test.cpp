#include "report/findings/suppress.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "report/findings/collect.h"
#include "report/render/render_json.h"
#include "report/render/render_terminal.h"
#include "report/render/summary.h"
#include "samples.h"
#include "trace_builder.h"

namespace devsan::report {
namespace {

using Catch::Matchers::Contains;

constexpr const char* kFile = "/srv/devsan.supp";

void meet(TraceBuilder& builder, int line, std::uint32_t flags = trace::kRaised) {
  builder.meeting({.frames = {{"/srv/torch/nn/functional.py", 9, "linear", nullptr, -1, -1, trace::kTorchFrame},
                              {"/srv/app/train.py", line, "Trainer.step"}},
                   .operands = {{"self", "cuda:0", {2}, "x"}, {"other", "cpu", {2}, "y"}},
                   .flags = flags});
}

Report collected(const std::vector<const TraceBuilder*>& builders,
                 const std::vector<SuppressionUse>* instead = nullptr) {
  Collector collector(instead);
  for (const TraceBuilder* builder : builders) collector.add(std::get<ReadTrace>(read_trace(builder->file())));
  return collector.take();
}

TEST_CASE("The entries that a process was given silence its findings, by the place outside torch") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  builder.recorder().add_suppression(kFile, 3, "device-mismatch file=train.py function=step", "on purpose");
  meet(builder, 5);
  const Report report = collected({&builder});
  CHECK(report.findings.empty());
  REQUIRE(report.suppressed.size() == 1);
  REQUIRE(report.suppressed[0].silence);
  CHECK(report.suppressed[0].silence->by == Silence::By::suppression);
  CHECK(report.suppressed[0].silence->line == 3);
  CHECK(report.suppressed[0].silence->reason == "on purpose");
  CHECK(report.suppressed[0].root_cause.has_value() == false);
}

TEST_CASE("The first entry that matches counts, for the findings of all ranks") {
  const TemporaryDirectory directory;
  TraceBuilder first(directory.path(), 0);
  TraceBuilder second(directory.path(), 1);
  for (TraceBuilder* builder : {&first, &second}) {
    builder->recorder().add_suppression(kFile, 1, "mixed-operands", "");
    builder->recorder().add_suppression(kFile, 2, "any op=aten::add", "");
    builder->recorder().add_suppression(kFile, 3, "device-mismatch", "");
    meet(*builder, 5);
  }
  trace::Recorder::bump_meeting(second.meeting({.frames = {{"/srv/app/other.py", 1, "f"}}}), 0);
  const Report report = collected({&first, &second});
  CHECK(report.findings.empty());
  REQUIRE(report.suppressed.size() == 2);
  REQUIRE(report.run.suppressions.size() == 3);
  CHECK(report.run.suppressions[0].count == 0);
  CHECK(report.run.suppressions[1].count == 4);
  CHECK(report.run.suppressions[2].count == 0);
  CHECK_THAT(summary(report, {}), Contains("unused suppression: /srv/devsan.supp:1: mixed-operands") &&
                                      Contains("devsan.supp:3: device-mismatch") && !Contains("devsan.supp:2"));
}

TEST_CASE("A rank without suppressions tells of the finding") {
  const TemporaryDirectory directory;
  TraceBuilder first(directory.path(), 0);
  TraceBuilder second(directory.path(), 1);
  first.recorder().add_suppression(kFile, 1, "device-mismatch", "");
  meet(first, 5);
  meet(second, 5);
  const Report report = collected({&first, &second});
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].ranks == std::vector{1});
  CHECK(report.suppressed.size() == 1);
}

TEST_CASE("Other entries can be taken in place of those of the traces") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  builder.recorder().add_suppression(kFile, 1, "device-mismatch", "");
  meet(builder, 5);
  const std::vector<SuppressionUse> none;
  CHECK(collected({&builder}, &none).findings.size() == 1);
  const std::vector<SuppressionUse> others = {{"/other.supp", 7, "any file=train.py", "", 0}};
  const Report report = collected({&builder}, &others);
  CHECK(report.findings.empty());
  REQUIRE(report.run.suppressions.size() == 1);
  CHECK(report.run.suppressions[0].file == "/other.supp");
  CHECK(report.run.suppressions[0].count == 1);
}

TEST_CASE("What the program allows or expects is silenced whatever a file says") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  builder.recorder().add_suppression(kFile, 1, "device-mismatch", "");
  meet(builder, 5, trace::kRaised | trace::kAllowed);
  meet(builder, 6, trace::kRaised | trace::kExpected);
  const Report report = collected({&builder});
  REQUIRE(report.suppressed.size() == 2);
  CHECK(report.suppressed[0].silence->by == Silence::By::allowed);
  CHECK(report.suppressed[1].silence->by == Silence::By::expected);
  CHECK(report.run.suppressions[0].count == 0);
}

TEST_CASE("The same finding inside and outside of what is allowed is told of with what happened outside") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  meet(builder, 5, trace::kRaised | trace::kAllowed);
  meet(builder, 5);
  const Report report = collected({&builder});
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].count == 1);
  REQUIRE(report.suppressed.size() == 1);
  CHECK(report.suppressed[0].id == report.findings[0].id);
}

TEST_CASE("What a damaged trace has left of an entry silences nothing") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  for (const char* text : {"", "device-mismatc", "any", "device-mismatch\nany op=*"}) {
    builder.recorder().add_suppression(kFile, 1, text, "");
  }
  meet(builder, 5);
  CHECK(collected({&builder}).findings.size() == 1);
}

TEST_CASE("Suppressed findings are hidden until they are asked for") {
  Finding finding = samples::plain_attribute();
  finding.silence = Silence{Silence::By::suppression, kFile, 4, "device-mismatch", "upstream's"};
  Report report = samples::report_of({});
  report.suppressed = {finding};
  const std::string hidden = render_terminal(report, {}, {});
  CHECK_THAT(hidden, !Contains("error[") && Contains("no finding") && Contains("; 1 suppressed") &&
                         Contains("1 suppressed finding hidden, --suppressed shows them"));
  CHECK_THAT(render_terminal(report, {}, {.suppressed = true}),
             Contains("error[device-mismatch]") && Contains("suppressed by /srv/devsan.supp:4: upstream's") &&
                 !Contains("hidden"));
  CHECK_FALSE(has_something_to_tell(report));
}

TEST_CASE("The JSON keeps suppressed findings apart, each with its reason") {
  Finding finding = samples::plain_attribute();
  finding.silence = Silence{Silence::By::suppression, kFile, 4, "device-mismatch", ""};
  Finding allowed = samples::allowed_scalar();
  allowed.silence = Silence{Silence::By::allowed, "", 0, "", ""};
  Report report = samples::report_of({});
  report.suppressed = {finding, allowed};
  report.run.suppressions = {{kFile, 4, "device-mismatch", "", 1}};
  const auto json = nlohmann::json::parse(render_json(report));
  CHECK(json["findings"].empty());
  REQUIRE(json["suppressed"].size() == 2);
  CHECK(json["suppressed"][0]["silence"]["by"] == "suppression");
  CHECK(json["suppressed"][0]["silence"]["line"] == 4);
  CHECK(json["suppressed"][0]["silence"]["reason"].is_null());
  CHECK(json["suppressed"][1]["silence"] == nlohmann::json({{"by", "allow"}}));
  CHECK(json["run"]["suppressions"][0]["count"] == 1);
}

TEST_CASE("A process that was halted is told of") {
  Report report = samples::report_of({samples::plain_attribute()});
  report.run.processes.front().close = trace::CloseMark::halted;
  CHECK_THAT(summary(report, {}), Contains("was ended by --halt") && !Contains("did not exit by itself"));
}

TEST_CASE("The end of a rank is told once, by the finding that it shares with others") {
  Finding end;
  end.kind = Kind::abnormal_exit;
  end.pid = 4242;
  end.ranks = {0};
  Report report = samples::report_of({end});
  Process& process = report.run.processes.front();
  process.close = trace::CloseMark::open;
  process.operators = 12;
  process.pid = 4243;
  process.rank = 1;
  CHECK_THAT(summary(report, {}), Contains("did not exit by itself"));
  report.findings.front().ranks = {0, 1};
  CHECK_THAT(summary(report, {}), !Contains("did not exit by itself"));
}

TEST_CASE("A file of suppressions is named with its whole path, and its mistakes with their lines") {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory.path() / "my.supp";
  std::ofstream(path) << "device-mismatch # fine\nwrong\n";
  const SuppressionFile file = read_suppression_file(path);
  REQUIRE(file.entries.size() == 1);
  CHECK(file.entries[0].file == path.string());
  REQUIRE(file.complaints.size() == 1);
  CHECK_THAT(file.complaints[0], Contains(path.string() + ":2: unknown kind 'wrong'"));
  CHECK_THAT(read_suppression_file(directory.path() / "none").complaints.at(0), Contains("No such file"));
  CHECK_THAT(read_suppression_file(directory.path()).complaints.at(0), Contains("directory"));
  CHECK(read_suppression_file("/dev/null").complaints.empty());
}

}  // namespace
}  // namespace devsan::report
