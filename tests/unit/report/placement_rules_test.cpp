// Rules about places: what they judge, and what is learned from traces.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "report/findings/build_placements.h"
#include "report/findings/build_traffic.h"
#include "report/learn.h"
#include "trace_builder.h"

namespace devsan::report {
namespace {

using Catch::Matchers::Contains;
using trace::PlaceKind;

struct Kept {
  PlaceKind kind;
  const char* owner;
  const char* leaf;
  const char* device;
  std::uint32_t step = 0;
};

// A process that was looked at at the end of each step.
class Process {
 public:
  Process(const TemporaryDirectory& directory, const std::vector<Kept>& looks, int rank = -1)
      : builder_(directory.path(), rank) {
    for (const Kept& kept : looks) keep(kept);
  }

  TraceBuilder& builder() { return builder_; }
  trace::TraceFile read() const { return builder_.read(); }

 private:
  void keep(const Kept& kept) {
    trace::Recorder& recorder = builder_.recorder();
    trace::PlacementRecord record{};
    record.number = number_of(std::string(kept.owner) + " " + kept.leaf);
    record.owner = recorder.intern_string(kept.owner);
    record.leaf = recorder.intern_string(kept.leaf);
    record.lineage =
        builder_.lineage(trace::LineageId::none, trace::How::created, "aten::to", kept.device, {"train.py", 7, "main"});
    record.kind = kept.kind;
    record.device = recorder.intern_device(kept.device);
    trace::PlacementsPayload look{};
    look.when = trace::LookedAt::backward_end;
    look.step = kept.step;
    recorder.add_placements(look, {&record, 1});
    recorder.set_step(std::max(recorder.step(), kept.step));
  }

  std::uint32_t number_of(const std::string& name) {
    return numbers_.try_emplace(name, static_cast<std::uint32_t>(numbers_.size() + 1)).first->second;
  }

  TraceBuilder builder_;
  std::map<std::string, std::uint32_t> numbers_;
};

rules::Rule rule_of(const std::string& sentence, const char* steps = "") {
  rules::Rule rule;
  REQUIRE_FALSE(rules::parse_sentence(sentence, rule));
  if (*steps != 0) rule.steps = *rules::parse_spans(steps);
  return rule;
}

bool keeps(const trace::TraceFile& trace, const rules::Rule& rule) {
  return keeps_rule(trace, kept_tensors_of(trace), moving_tensors_of(trace), rule);
}

std::string learned(const std::vector<trace::TraceFile>& traces) {
  Learner learner;
  for (const trace::TraceFile& trace : traces) learner.add(trace);
  return learner.rules({});
}

std::string learned(const trace::TraceFile& trace) {
  Learner learner;
  learner.add(trace);
  return learner.rules({});
}

TEST_CASE("A name that is a part of another one is learned only where both are at one place") {
  const TemporaryDirectory directory;
  const Process process(directory, {{PlaceKind::parameter, "model.layer", "weight", "cuda:0"},
                                    {PlaceKind::parameter, "model.layer", "bias", "cuda:0"},
                                    {PlaceKind::parameter, "ema.model.layer", "weight", "cpu"},
                                    {PlaceKind::parameter, "ema.model.layer", "bias", "cpu"},
                                    {PlaceKind::parameter, "head", "weight", "cuda:0"}});
  const std::string text = learned(process.read());
  CHECK_THAT(text, Contains("\"parameters and buffers of ema on cpu\""));
  CHECK_THAT(text, Contains("\"parameters and buffers of head on cuda:0\""));
  CHECK_THAT(text, !Contains("of model"));
}

TEST_CASE("Where a rule about a range does not hold, its parts are learned") {
  const TemporaryDirectory directory;
  const Process process(directory, {{PlaceKind::parameter, "layers[0]", "weight", "cuda:0"},
                                    {PlaceKind::parameter, "layers[1]", "weight", "cuda:0"},
                                    {PlaceKind::parameter, "head", "weight", "cuda:1"},
                                    {PlaceKind::parameter, "shadow.layers[1]", "weight", "cpu"}});
  const std::string text = learned(process.read());
  CHECK_THAT(text, Contains("layers[0] on cuda:0"));
  CHECK_THAT(text, !Contains("layers[{0-1}] on cuda:0"));
  CHECK_THAT(text, !Contains("of layers[1] on"));
}

TEST_CASE("Nothing is said of all attributes where variables come and go") {
  const TemporaryDirectory directory;
  const Process process(
      directory, {{PlaceKind::attribute, "state.flat", "[0]", "cpu"}, {PlaceKind::attribute, "", "batch", "cuda:0"}});
  const std::string text = learned(process.read());
  CHECK_THAT(text, Contains("\"attributes of state on cpu\""));
  CHECK_THAT(text, !Contains("\"attributes on"));
}

TEST_CASE("Of processes that share a rank, or have none, what all of them say is learned") {
  const TemporaryDirectory directory;
  const Process scaling(directory, {{PlaceKind::parameter, "model", "weight", "cuda:0"},
                                    {PlaceKind::attribute, "scaler.it", "scale", "cuda:0"}});
  const Process loading(directory, {{PlaceKind::parameter, "model", "weight", "cuda:0"},
                                    {PlaceKind::attribute, "queue.it", "scale", "cpu"}});
  std::vector<trace::TraceFile> traces;
  traces.push_back(scaling.read());
  traces.push_back(loading.read());
  const std::string text = learned(traces);
  CHECK_THAT(text, Contains("\"parameters and buffers on cuda:0\""));
  CHECK_THAT(text, !Contains("attributes"));
}

TEST_CASE("A condition on ranks names no process without a rank") {
  const TemporaryDirectory directory;
  const Process first(directory, {{PlaceKind::parameter, "model", "weight", "cuda:0"}}, 0);
  const Process second(directory, {{PlaceKind::parameter, "model", "weight", "cuda:1"}}, 1);
  const Process helper(directory, {{PlaceKind::parameter, "model", "weight", "cpu"}});
  std::vector<trace::TraceFile> traces;
  for (const Process* process : {&first, &second, &helper}) traces.push_back(process->read());
  const std::string text = learned(traces);
  CHECK_THAT(text, Contains("ranks = \"0\"") && Contains("ranks = \"1\""));
  CHECK_THAT(text, !Contains("-1") && !Contains("cpu"));
}

TEST_CASE("State is beside its parameter at each step of a rule, whichever of the two has moved") {
  const TemporaryDirectory directory;
  const Process process(directory, {{PlaceKind::parameter, "model", "weight", "cpu", 0},
                                    {PlaceKind::state, "model.weight", "exp_avg", "cpu", 0},
                                    {PlaceKind::parameter, "model", "weight", "cuda:0", 3},
                                    {PlaceKind::state, "model.weight", "exp_avg", "cuda:0", 5}});
  const trace::TraceFile trace = process.read();
  const char* const sentence = "optimizer state beside its parameter";
  CHECK_FALSE(keeps(trace, rule_of(sentence)));
  CHECK(keeps(trace, rule_of(sentence, "0-2")));
  CHECK_FALSE(keeps(trace, rule_of(sentence, "2-4")));
  CHECK_FALSE(keeps(trace, rule_of(sentence, "4")));
  CHECK(keeps(trace, rule_of(sentence, "5-")));
}

// Whether a rule with these steps makes a warning of a copy that happened in some.
bool forbids(const char* steps, std::uint32_t first, const std::vector<std::uint32_t>& again) {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  trace::TrafficPayload* copy = builder.traffic({.kind = trace::TrafficKind::copy,
                                                 .op = "aten::copy_",
                                                 .frames = {{"/srv/app/train.py", 12, "log", "    x.to('cpu')", 4, 15}},
                                                 .operands = {{"self", "cuda:0", {16}, "x", trace::NameKind::local}},
                                                 .flags = trace::kToHost,
                                                 .bytes = 64,
                                                 .step = first});
  for (const std::uint32_t step : again) builder.recorder().bump_traffic(copy, step, 64);
  const trace::TraceFile trace = builder.read();
  std::vector<Finding> findings = build_traffic(trace);
  REQUIRE(findings.size() == 1);
  RuleBook book;
  book.use_instead({rule_of("no transfer", steps)}, {});
  book.judge_traffic(trace, findings);
  return findings.front().expectation.has_value();
}

TEST_CASE("A rule about steps forbids a copy that also happened before them") {
  CHECK(forbids("1-", 0, {1, 2, 3}));
  CHECK(forbids("2", 0, {1, 2, 3}));
  CHECK(forbids("9", 0, {9}));
  CHECK_FALSE(forbids("4-", 0, {1, 2, 3}));
  CHECK_FALSE(forbids("4-6", 0, {9}));  // whether it happened there is not known
}

}  // namespace
}  // namespace devsan::report
