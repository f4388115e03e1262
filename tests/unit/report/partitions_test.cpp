// Where ZeRO-3's partitions belong, by what its optimizer says.
#include "report/findings/partitions.h"

#include <catch2/catch.hpp>
#include <string>

#include "report/findings/build_expectations.h"
#include "trace_builder.h"

namespace devsan::report {
namespace {

constexpr const char* kMaster = "engine.optimizer.fp32_partitioned_groups_flat";
constexpr const char* kHalf = "engine.optimizer.fp16_partitioned_groups_flat";

class Process {
 public:
  void says(const char* name, const char* value) {
    trace::Recorder& recorder = builder_.recorder();
    trace::SettingPayload setting{};
    setting.owner = recorder.intern_string("engine.optimizer");
    setting.name = recorder.intern_string(name);
    setting.value = recorder.intern_string(value);
    recorder.add_setting(setting);
  }

  void offloads() {
    says("device", "cpu");
    says("offload_optimizer", "1");
  }

  void keeps(const char* owner, const char* leaf, const char* device, std::uint8_t flags = 0,
             trace::How how = trace::How::created, trace::PlaceKind kind = trace::PlaceKind::attribute) {
    trace::Recorder& recorder = builder_.recorder();
    trace::PlacementRecord record{};
    record.number = ++count_;
    record.owner = recorder.intern_string(owner);
    record.leaf = recorder.intern_string(leaf);
    record.lineage = builder_.lineage(trace::LineageId::none, how, "aten::to", device, {"train.py", 7, "main"});
    record.kind = kind;
    record.device = recorder.intern_device(device);
    record.flags = flags;
    trace::PlacementsPayload look{};
    look.when = trace::LookedAt::backward_end;
    recorder.add_placements(look, {&record, 1});
  }

  void keeps_state(const std::string& group, const char* device) {
    keeps(group.c_str(), "exp_avg", device, 0, trace::How::created, trace::PlaceKind::state);
  }

  // The names of the expectations that are broken.
  std::vector<std::string> broken() const {
    const trace::TraceFile trace = builder_.read();
    std::vector<std::string> rules;
    for (const Finding& finding : judge_expectations(trace, kept_tensors_of(trace), {})) {
      rules.push_back(finding.expectation->rule);
    }
    return rules;
  }

  // "engine.optimizer.fp32_partitioned_groups_flat[0] on cuda:0, not cpu", each
  std::vector<std::string> misplaced() const {
    const trace::TraceFile trace = builder_.read();
    const std::vector<KeptTensor> tracks = kept_tensors_of(trace);
    std::vector<std::string> found;
    for (const Breach& breach : misplaced_partitions(trace, tracks)) {
      found.push_back(breach.track->path() + " on " + breach.stay->text() + ", not " + breach.expected);
    }
    return found;
  }

 private:
  TemporaryDirectory directory_;
  TraceBuilder builder_{directory_.path()};
  std::uint32_t count_ = 0;
};

using Strings = std::vector<std::string>;

TEST_CASE("offloaded master weights belong on the CPU") {
  Process process;
  process.offloads();
  process.keeps(kMaster, "[0]", "cpu");
  process.keeps(kMaster, "[1]", "cuda:1");
  CHECK(process.misplaced() == Strings{std::string(kMaster) + "[1] on cuda:1, not cpu"});
}

TEST_CASE("master weights that are not offloaded belong on the rank's own GPU") {
  Process process;
  process.says("device", "cuda:1");
  process.says("offload_optimizer", "0");
  process.keeps(kMaster, "[0]", "cuda:1");
  process.keeps(kMaster, "[1]", "cpu");
  process.keeps(kMaster, "[2]", "cuda:0");
  CHECK(process.misplaced() ==
        Strings{std::string(kMaster) + "[1] on cpu, not cuda:1", std::string(kMaster) + "[2] on cuda:0, not cuda:1"});
}

TEST_CASE("with a ratio each group has a device of its own") {
  Process process;
  process.offloads();
  process.says("subgroup_to_device[0]", "cuda");
  process.says("subgroup_to_device[1]", "cpu");
  process.keeps(kMaster, "[0]", "cuda:0");
  process.keeps(kMaster, "[1]", "cpu");
  CHECK(process.misplaced().empty());
  process.keeps(kMaster, "[0]", "cpu");
  CHECK(process.misplaced() == Strings{std::string(kMaster) + "[0] on cpu, not cuda"});
}

TEST_CASE("weights of the model are where offload_param has them") {
  Process process;
  process.offloads();
  process.keeps(kHalf, "[0]", "cuda:0");
  process.keeps(kHalf, "[1]", "cpu");
  CHECK(process.misplaced().empty());  // which of them is meant is not known
  process.says("offload_param", "1");
  CHECK(process.misplaced() == Strings{std::string(kHalf) + "[0] on cuda:0, not cpu"});
}

TEST_CASE("gradients that a line took out of pinned memory are told where there is a GPU") {
  Process process;
  process.offloads();
  process.says("offload_optimizer_pin_memory", "1");
  process.keeps("engine.optimizer", "grad_partitions_flat_buffer", "cpu", 0, trace::How::moved);
  CHECK(process.misplaced().empty());
  process.keeps("engine", "x", "cuda:0");
  CHECK(process.misplaced() == Strings{"engine.optimizer.grad_partitions_flat_buffer on cpu, not cpu pinned"});
}

TEST_CASE("of gradients that DeepSpeed itself made in such memory nothing is said") {
  const bool pinned = GENERATE(true, false);
  Process process;
  process.says("device", "cpu");
  process.says("offload_optimizer_pin_memory", "1");
  process.keeps("engine", "x", "cuda:0");
  process.keeps("engine.optimizer", "grad_partitions_flat_buffer", "cpu", pinned ? trace::kPlacePinned : 0);
  CHECK(process.misplaced().empty());
}

TEST_CASE("nothing is said of groups on disk, of states that were sent elsewhere, and of other objects") {
  Process process;
  process.offloads();
  SECTION("on disk") {
    process.keeps(kMaster, "[0]", "cuda:0", trace::kPlaceEmpty);
  }
  SECTION("sent elsewhere") {
    process.says("offloaded_states", "2");
    process.keeps(kMaster, "[0]", "cuda:0");
  }
  SECTION("of another object") {
    process.keeps("other.fp32_partitioned_groups_flat", "[0]", "cuda:0");
  }
  CHECK(process.misplaced().empty());
}

TEST_CASE("a group that is written to disk is empty or in host memory, and not on the GPU") {
  Process process;
  process.offloads();
  process.keeps(kMaster, "[0]", "cuda:0", trace::kPlaceEmpty);
  process.keeps(kMaster, "[1]", "cpu", trace::kPlacePinned);
  CHECK(process.misplaced().empty());
  process.keeps(kMaster, "[2]", "cuda:0");
  CHECK(process.misplaced() == Strings{std::string(kMaster) + "[2] on cuda:0, not cpu"});
}

TEST_CASE("state is not expected to follow a group to where that should not be") {
  Process process;
  process.offloads();
  process.keeps(kMaster, "[0]", "cuda:0");
  process.keeps_state(std::string(kMaster) + "[0]", "cpu");
  process.keeps(kMaster, "[1]", "cpu");
  process.keeps_state(std::string(kMaster) + "[1]", "cpu");
  CHECK(process.broken() == Strings{"partition-where-configured"});
}

TEST_CASE("state follows a group that is where it should be") {
  Process process;
  process.says("device", "cuda:0");
  process.keeps(kMaster, "[0]", "cuda:0");
  process.keeps_state(std::string(kMaster) + "[0]", "cpu");
  process.keeps(kMaster, "[1]", "cuda:0");
  process.keeps_state(std::string(kMaster) + "[1]", "cuda:0");
  CHECK(process.broken() == Strings{"state-beside-parameter"});
}

TEST_CASE("what an optimizer said last counts") {
  Process process;
  process.says("device", "cuda:0");
  process.says("offloaded_states", "2");
  process.says("offloaded_states", "0");
  process.keeps(kMaster, "[0]", "cpu");
  CHECK(process.misplaced() == Strings{std::string(kMaster) + "[0] on cpu, not cuda:0"});
}

}  // namespace
}  // namespace devsan::report
