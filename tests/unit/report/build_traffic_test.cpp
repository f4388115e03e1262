#include "report/findings/build_traffic.h"

#include <catch2/catch.hpp>

#include "report/model/merge.h"
#include "trace_builder.h"

namespace devsan::report {
namespace {

using Catch::Matchers::Contains;

const char* const kTrain = "/srv/app/train.py";
const Spot kCopy = {kTrain, 8, "fetch", "    return x.to('cpu', non_blocking=True)", 11, 41};

Finding only(const TraceBuilder& builder) {
  auto findings = build_traffic(builder.read());
  REQUIRE(findings.size() == 1);
  return findings.front();
}

TrafficSketch race() {
  return {.kind = trace::TrafficKind::race,
          .op = "aten::sum",
          .frames = {{kTrain, 12, "log", "    total = host.sum()", 12, 22}},
          .operands = {{"self", "cpu", {16}, "host", trace::NameKind::local}},
          .flags = trace::kToHost,
          .bytes = 64,
          .race = trace::RaceKind::host_read_target,
          .cause = kCopy};
}

TEST_CASE("A race is a warning where the memory is used, and its cause is the copy") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  builder.traffic(race());
  const Finding finding = only(builder);
  CHECK(finding.kind == Kind::async_race);
  CHECK(finding.severity == Severity::warning);
  REQUIRE(finding.where);
  CHECK(finding.where->line == 12);
  REQUIRE(finding.root_cause);
  CHECK(finding.root_cause->line == 8);
  CHECK(finding.root_cause->function == "fetch");
  REQUIRE(finding.fix);
  CHECK(finding.fix->line == 12);
  CHECK_THAT(finding.fix->text, Contains("synchronize()") && Contains("train.py:8"));
}

TEST_CASE("A race is a note only when neither side is the program's own code") {
  const auto severity = [](std::uint8_t flags) {
    const TemporaryDirectory directory;
    TraceBuilder builder(directory.path());
    TrafficSketch sketch = race();
    sketch.flags |= flags;
    builder.traffic(sketch);
    return only(builder).severity;
  };
  CHECK(severity(trace::kForeignPlace) == Severity::warning);
  CHECK(severity(trace::kForeignCause) == Severity::warning);
  CHECK(severity(trace::kForeignPlace | trace::kForeignCause) == Severity::note);
}

TEST_CASE("Races of one line with different copies are different findings") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  TrafficSketch sketch = race();
  builder.traffic(sketch);
  sketch.cause.line = 9;
  builder.traffic(sketch);
  const auto findings = build_traffic(builder.read());
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].id != findings[1].id);
}

TEST_CASE("Another stream is told to wait, not the host") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  TrafficSketch sketch = race();
  sketch.race = trace::RaceKind::stream_used_target;
  builder.traffic(sketch);
  CHECK_THAT(only(builder).fix->text, Contains("wait_stream"));
}

TEST_CASE("Pageable memory is to be pinned where it was made") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  const auto made = builder.lineage(trace::LineageId::none, trace::How::created, "aten::empty.memory_format", "cpu",
                                    {kTrain, 3, "<module>", "buffer = torch.empty(16)"});
  TrafficSketch sketch{.kind = trace::TrafficKind::unpinned_copy,
                       .op = "aten::to.device",
                       .frames = {{kTrain, 20, "step", "    x = batch['x'].to(device, non_blocking=True)", 8, 48}},
                       .operands = {{"self", "cpu", {16}, "", trace::NameKind::unknown, 0, made}},
                       .bytes = 64};
  builder.traffic(sketch);
  const Finding finding = only(builder);
  CHECK(finding.kind == Kind::unpinned_async_copy);
  CHECK(finding.severity == Severity::warning);
  CHECK(finding.operands[0].name == "batch['x']");
  REQUIRE(finding.root_cause);
  CHECK(finding.root_cause->line == 3);
  CHECK_THAT(finding.fix->text, Contains("pin_memory=True"));
}

TEST_CASE("Memory of unknown origin gets a change, but no cause, and library code a note") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  builder.traffic({.kind = trace::TrafficKind::unpinned_copy,
                   .op = "aten::to.device",
                   .frames = {kCopy},
                   .operands = {{"self", "cpu", {16}}},
                   .flags = trace::kForeignPlace,
                   .bytes = 64});
  const Finding finding = only(builder);
  CHECK(finding.severity == Severity::note);
  CHECK_FALSE(finding.root_cause);
  CHECK(finding.fix);
}

TEST_CASE("A number is a warning when an operator took it, and a note when the program asked for it") {
  const auto severity = [](const char* source, int end, bool taken, std::uint8_t flags) {
    const TemporaryDirectory directory;
    TraceBuilder builder(directory.path());
    auto* payload = builder.traffic({.frames = {{kTrain, 5, "step", source, 0, end}},
                                     .operands = {{"self", "cuda:0", {}}},
                                     .flags = flags,
                                     .bytes = 4});
    if (taken) trace::Recorder::set_taker(payload, builder.recorder().add_operator("aten::full"));
    const Finding finding = only(builder);
    CHECK(finding.kind == Kind::implicit_sync);
    CHECK(finding.fix.has_value() == (finding.severity == Severity::warning));
    return finding.severity;
  };
  CHECK(severity("torch.full((2,), s)", 19, true, 0) == Severity::warning);
  CHECK(severity("torch.full((2,), s)", 19, true, trace::kForeignPlace) == Severity::note);
  CHECK(severity("float(s)", 8, false, 0) == Severity::note);
  CHECK(severity("s.item()", 8, true, 0) == Severity::note);
}

TEST_CASE("Python takes a tensor for an index or a length where the line calls nothing") {
  const auto taker = [](const char* source, const char* op, const char* inside_torch = nullptr) {
    const TemporaryDirectory directory;
    TraceBuilder builder(directory.path());
    const int end = static_cast<int>(std::string_view(source).size());
    const Spot program{kTrain, 5, "step", source, 0, end};
    std::vector frames{program};
    if (inside_torch != nullptr) frames.insert(frames.begin(), {inside_torch, 9, "f", "", -1, -1, trace::kTorchFrame});
    const auto flags = static_cast<std::uint8_t>(inside_torch != nullptr ? trace::kForeignPlace : 0);
    builder.traffic({.op = op, .frames = frames, .operands = {{"self", "cuda:0", {}}}, .flags = flags, .bytes = 8});
    const Finding finding = only(builder);
    CHECK((finding.severity == Severity::warning) == !finding.traffic->taker.empty());
    return finding.traffic->taker;
  };
  CHECK(taker("names[label]", "aten::item") == "Tensor.__index__");
  CHECK(taker("[False] * lengths[i]", "aten::item") == "Tensor.__index__");
  CHECK(taker("range(count)", "aten::item") == "Tensor.__index__");
  CHECK(taker("int(count)", "aten::item").empty());
  CHECK(taker("count.item()", "aten::item").empty());
  CHECK(taker("flags[0]", "aten::is_nonzero").empty());
  CHECK(taker("self.experts[index]", "aten::item", "/lib/python3/site-packages/torch/nn/modules/container.py") ==
        "Tensor.__index__");
  CHECK(taker("samples[index]", "aten::item", "/lib/python3/site-packages/torch/utils/data/dataset.py").empty());
}

TEST_CASE("The cause of a number is the line that computed it, not what the failing line did to it") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  const auto ratio = builder.lineage(trace::LineageId::none, trace::How::created, "aten::div.Tensor", "cuda:0",
                                     {kTrain, 4, "step", "ratio = a.norm() / b.norm()"});
  const auto negated = builder.lineage(ratio, trace::How::created, "aten::neg", "cuda:0",
                                       {kTrain, 5, "step", "p.add_(update, alpha=-ratio)"});
  auto* payload = builder.traffic({.frames = {{kTrain, 5, "step", "p.add_(update, alpha=-ratio)", 0, 28}},
                                   .operands = {{"self", "cuda:0", {}, "", trace::NameKind::unknown, 0, negated}},
                                   .bytes = 4});
  trace::Recorder::set_taker(payload, builder.recorder().add_operator("aten::add_.Tensor"));
  const Finding finding = only(builder);
  REQUIRE(finding.root_cause);
  CHECK(finding.root_cause->line == 4);
}

TEST_CASE("A copy is told of from the second time on, with its count per step and its bytes") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  TrafficSketch sketch{.kind = trace::TrafficKind::copy, .op = "aten::to.device", .frames = {kCopy}, .bytes = 64};
  auto* payload = builder.traffic(sketch);
  CHECK(build_traffic(builder.read()).empty());
  trace::Recorder::bump_traffic(payload, 0, 64);
  trace::Recorder::bump_traffic(payload, 1, 64);
  trace::Recorder::bump_traffic(payload, 1, 64);
  builder.recorder().set_step(1);
  const Finding finding = only(builder);
  CHECK(finding.kind == Kind::implicit_transfer);
  CHECK(finding.severity == Severity::note);
  CHECK(finding.count == 4);
  REQUIRE(finding.traffic);
  CHECK(finding.traffic->bytes == 256);
  CHECK(finding.traffic->per_step == 2.0);

  Finding of_other_rank = finding;
  FindingMerger merger;
  merger.add(finding);
  merger.add(std::move(of_other_rank));
  CHECK(merger.take().front().traffic->bytes == 512);
}

}  // namespace
}  // namespace devsan::report
