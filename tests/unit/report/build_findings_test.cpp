#include "report/findings/build_findings.h"

#include <catch2/catch.hpp>

#include "trace_builder.h"

namespace devsan::report {
namespace {

const char* const kModel = "/srv/app/model.py";
const char* const kTorch = "/usr/lib/python3/site-packages/torch/functional.py";
const char* const kFramework = "/srv/venv/lib/python3.11/site-packages/framework/engine.py";

MeetingSketch bias_meeting() {
  return {.frames = {{kModel, 23, "Net.forward", "    return s + self.bias", 11, 24}, {kModel, 40, "<module>"}},
          .operands = {{"self", "cuda:0", {2, 3}, "s", trace::NameKind::local},
                       {"other", "cpu", {3}, "self.bias", trace::NameKind::attribute}},
          .step = 4};
}

Finding only(const TraceBuilder& builder) {
  auto findings = build_findings(builder.read());
  REQUIRE(findings.size() == 1);
  return findings.front();
}

TEST_CASE("A meeting that raised becomes an error with place, operands and circumstances") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path(), 3);
  builder.meeting(bias_meeting());
  const Finding finding = only(builder);

  CHECK(finding.kind == Kind::device_mismatch);
  CHECK(finding.severity == Severity::error);
  CHECK(finding.raised);
  CHECK_FALSE(finding.handled);
  CHECK(finding.message == "Expected all tensors to be on the same device");
  CHECK(finding.op == "aten::add.Tensor");
  REQUIRE(finding.where);
  CHECK(finding.where->file == kModel);
  CHECK(finding.where->line == 23);
  CHECK(finding.where->function == "Net.forward");
  CHECK(finding.where->source == "    return s + self.bias");
  CHECK(finding.where->column == 11);
  CHECK(finding.where->end_column == 24);
  REQUIRE(finding.stack.size() == 2);
  CHECK(finding.stack[1].line == 40);
  CHECK(finding.step == 4);
  CHECK(finding.phase == trace::Phase::forward);
  CHECK(finding.rank == 3);
  CHECK(finding.ranks == std::vector<int>{3});
  CHECK(finding.thread_name == "MainThread");
  CHECK(finding.count == 1);
  REQUIRE(finding.operands.size() == 2);
  CHECK_FALSE(finding.operands[0].odd);
  CHECK(finding.operands[1].odd);
  CHECK(finding.operands[1].name == "self.bias");
  CHECK(finding.operands[1].is == trace::NameKind::attribute);
  CHECK(finding.operands[1].shape == std::vector<std::int64_t>{3});
  CHECK(finding.operands[1].dtype == "float32");
}

TEST_CASE("A mismatch that the program handled is a warning") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  trace::Recorder::set_meeting_flags(builder.meeting(bias_meeting()), trace::kRaised | trace::kHandled);
  const Finding finding = only(builder);
  CHECK(finding.kind == Kind::device_mismatch);
  CHECK(finding.severity == Severity::warning);
  CHECK(finding.handled);
  CHECK(finding.raised);
}

TEST_CASE("A meeting that PyTorch allowed is a note, counted, without a change to make") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  auto sketch = bias_meeting();
  sketch.flags = 0;
  sketch.message = "";
  auto* meeting = builder.meeting(sketch);
  trace::Recorder::bump_meeting(meeting, 5);
  trace::Recorder::bump_meeting(meeting, 6);
  const Finding finding = only(builder);
  CHECK(finding.kind == Kind::mixed_operands);
  CHECK(finding.severity == Severity::note);
  CHECK_FALSE(finding.raised);
  CHECK(finding.count == 3);
  CHECK_FALSE(finding.fix);
  CHECK_FALSE(finding.rank);
  CHECK(finding.ranks.empty());
}

TEST_CASE("The place is the innermost frame outside torch, and libraries are proper places") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  auto sketch = bias_meeting();
  sketch.frames = {{kTorch, 400, "norm", nullptr, -1, -1, trace::kTorchFrame | trace::kLibraryFrame},
                   {kFramework, 12, "Engine.step", nullptr, -1, -1, trace::kLibraryFrame},
                   {kModel, 40, "<module>"}};
  builder.meeting(sketch);
  const Finding finding = only(builder);
  REQUIRE(finding.where);
  CHECK(finding.where->file == kFramework);
  CHECK(finding.where->library);
  REQUIRE(finding.stack.size() == 3);
  CHECK(finding.stack[0].torch);
  CHECK_FALSE(finding.stack[1].torch);
  CHECK_FALSE(finding.stack[2].library);
}

TEST_CASE("Without Python there is a native stack and no place") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  auto sketch = bias_meeting();
  sketch.frames.clear();
  sketch.native_symbols = {"app::train()", ""};
  builder.meeting(sketch);
  const Finding finding = only(builder);
  CHECK_FALSE(finding.where);
  CHECK(finding.stack.empty());
  REQUIRE(finding.native_stack.size() == 2);
  CHECK(finding.native_stack[0].symbol == "app::train()");
  CHECK(finding.native_stack[0].module == "/usr/lib/libapp.so");
  CHECK(finding.native_stack[0].offset == 0x40);
  CHECK_FALSE(finding.fix);
}

TEST_CASE("A failure in backward carries the stack of its forward operator") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  auto sketch = bias_meeting();
  sketch.phase = trace::Phase::backward;
  sketch.forward_frames = {{kModel, 9, "Net.forward"}};
  builder.meeting(sketch);
  const Finding finding = only(builder);
  REQUIRE(finding.forward);
  CHECK(finding.forward->front().line == 9);
}

TEST_CASE("A lineage is told newest first and ends at the origin") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  using enum trace::How;
  const auto made = builder.lineage(trace::LineageId::none, created, "aten::ones", "cpu", {kModel, 3, "load"});
  const auto moved_there = builder.lineage(made, moved, "aten::_to_copy", "cuda:0", {kModel, 5, "load"});
  const auto halved = builder.lineage(moved_there, derived, "aten::div.Tensor", "cuda:0", {kModel, 7, "half"});
  auto sketch = bias_meeting();
  sketch.operands[0].lineage = halved;
  builder.meeting(sketch);
  const auto lineage = only(builder).operands[0].lineage;
  REQUIRE(lineage.size() == 3);
  CHECK(lineage[0].op == "aten::div.Tensor");
  CHECK(lineage[0].how == derived);
  CHECK(lineage[0].at.line == 7);
  CHECK(lineage[1].how == moved);
  CHECK(lineage[1].device == "cuda:0");
  CHECK(lineage[2].how == created);
  CHECK(lineage[2].device == "cpu");
  CHECK(lineage[2].at.function == "load");
}

TEST_CASE("Generators and device arguments have neither shape nor dtype") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  auto sketch = bias_meeting();
  sketch.operands = {{"generator", "cpu", {}, "gen", trace::NameKind::local, trace::kGenerator},
                     {"device", "cuda:0", {}, "", trace::NameKind::unknown, trace::kDeviceArgument}};
  builder.meeting(sketch);
  const Finding finding = only(builder);
  CHECK_FALSE(finding.operands[0].shape);
  CHECK(finding.operands[0].dtype.empty());
  CHECK(finding.operands[0].odd);
  CHECK_FALSE(finding.operands[1].shape);
  CHECK_FALSE(finding.operands[1].odd);
}

TEST_CASE("Dimensions beyond those that a trace keeps are counted") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  auto sketch = bias_meeting();
  sketch.operands[0].shape = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  builder.meeting(sketch);
  const Finding finding = only(builder);
  CHECK(finding.operands[0].shape->size() == trace::kMaxShownDims);
  CHECK(finding.operands[0].hidden_dims == 2);
}

TEST_CASE("An operator called past the wrappers still has its place and message") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  auto sketch = bias_meeting();
  sketch.operands.clear();
  sketch.flags = trace::kRaised | trace::kNoOperands;
  builder.meeting(sketch);
  const Finding finding = only(builder);
  CHECK(finding.severity == Severity::error);
  CHECK(finding.where->line == 23);
  CHECK(finding.operands.empty());
}

}  // namespace
}  // namespace devsan::report
