// What a report says of code on the host that follows a device pointer.
#include <catch2/catch.hpp>

#include "report/findings/build_findings.h"
#include "report/model/merge.h"
#include "report/render/render_terminal.h"
#include "report/wording/host_access_text.h"
#include "trace_builder.h"

namespace devsan::report {
namespace {

using Catch::Matchers::Contains;

const char* const kProgram = "/srv/app/train.py";

MeetingSketch access(TraceBuilder& builder, const char* text) {
  MeetingSketch sketch;
  sketch.op = "reader::first";
  sketch.flags = trace::kHostAccess;
  sketch.message = "";
  sketch.frames = {{kProgram, 8, "<module>", "reader.first(y, x)", 0, 18}};
  sketch.native_symbols = {"_ZN6reader5firstEPKf"};
  sketch.operands = {{"", "cuda:0"}};
  sketch.operands[0].flags = trace::kUnseen;
  const Spot made{kProgram, 5, "<module>", "y = x.cuda()"};
  sketch.operands[0].lineage = builder.lineage(trace::LineageId::none, trace::How::moved, "aten::to", "cuda:0", made);
  sketch.evidence = {{trace::EvidenceKind::host_access, 0, text}};
  return sketch;
}

Finding only(const TraceBuilder& builder) {
  auto findings = build_findings(builder.read());
  REQUIRE(findings.size() == 1);
  return findings.front();
}

TEST_CASE("A device pointer that the host followed is told with the code, the tensor's history and a change") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  builder.meeting(access(builder, "read 16 of 4096"));
  const Finding finding = only(builder);
  CHECK(finding.kind == Kind::host_dereference);
  CHECK(finding.severity == Severity::error);
  CHECK_FALSE(finding.raised);
  REQUIRE(finding.operands.size() == 1);
  CHECK(finding.operands[0].odd);
  CHECK(finding.operands[0].name.empty());  // either argument of the call may be meant
  CHECK_FALSE(finding.operands[0].shape);
  REQUIRE(finding.operands[0].lineage.size() == 1);
  CHECK(finding.operands[0].lineage[0].at.line == 5);
  REQUIRE(finding.native_stack.size() == 1);
  CHECK(finding.native_stack[0].symbol == "reader::first(float const*)");
  CHECK_THAT(host_access_headline(finding),
             Contains("reader::first (") && Contains(" reads memory of cuda:0 on the host"));
  REQUIRE(finding.host_access);
  CHECK_FALSE(finding.host_access->writes);
  CHECK(finding.host_access->byte == 16);
  CHECK(finding.host_access->bytes == 4096);
  REQUIRE(finding.root_cause);
  CHECK(finding.root_cause->line == 8);
  CHECK_THAT(finding.root_cause->why, Contains("in reader::first") && Contains("byte 16 of 4096") && Contains("read"));
  REQUIRE(finding.fix);
  CHECK_THAT(finding.fix->text, Contains(".cpu()"));
  const std::string shown = render_finding(finding, Style{});
  CHECK_THAT(shown, Contains("error[host-dereference]") && Contains("Where `tensor` on cuda:0 comes from"));
  CHECK_THAT(shown, !Contains("PyTorch said"));
}

TEST_CASE("A write is told as one, with another change") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  builder.meeting(access(builder, "write 0 of 24"));
  const Finding finding = only(builder);
  CHECK_THAT(host_access_headline(finding), Contains(" writes memory of cuda:0"));
  CHECK_THAT(finding.fix->text, Contains("copy that to the device"));
}

TEST_CASE("Memory that was given back belongs to no tensor") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  MeetingSketch sketch = access(builder, "read");
  sketch.operands.clear();
  sketch.native_symbols.clear();
  sketch.evidence[0].operand = trace::kWholeFinding;
  builder.meeting(sketch);
  const Finding finding = only(builder);
  CHECK_FALSE(finding.host_access->byte);
  CHECK(host_access_headline(finding) == "the host reads device memory that has been given back");
  CHECK_THAT(render_finding(finding, Style{}), Contains("given back"));
}

TEST_CASE("What a process did is told before its end") {
  FindingMerger merger;
  Finding end, access;
  end.kind = Kind::abnormal_exit;
  access.kind = Kind::host_dereference;
  access.time_ns = 5;
  end.id = identity_of(end);
  access.id = identity_of(access);
  merger.add(end);
  merger.add(access);
  const auto findings = merger.take();
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].kind == Kind::host_dereference);
}

}  // namespace
}  // namespace devsan::report
