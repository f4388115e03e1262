// Rules, placements and writes of attributes, written and read back.
#include <catch2/catch.hpp>
#include <string>

#include "sample.h"

namespace devsan::trace::testing {
namespace {

PlacementRecord record_of(Recorder& recorder, std::uint32_t number, PlaceKind kind) {
  PlacementRecord record{};
  record.number = number;
  record.kind = kind;
  record.owner = recorder.intern_string("layers.0");
  record.leaf = recorder.intern_string("weight");
  record.device = recorder.intern_device("cuda:1");
  record.flags = kPlacePinned;
  return record;
}

TEST_CASE("where tensors are is read back, look by look") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  PlacementsPayload look{};
  look.step = 3;
  look.when = LookedAt::backward_end;
  const PlacementRecord records[] = {record_of(*recorder, 1, PlaceKind::parameter),
                                     record_of(*recorder, 2, PlaceKind::module)};
  recorder->add_placements(look, records);
  recorder->add_placements(look, {});
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  REQUIRE(trace.placements().size() == 2);
  const Placements& first = trace.placements()[0];
  CHECK(first.fixed.step == 3);
  REQUIRE(first.records.size() == 2);
  CHECK(trace.string(first.records[0].owner) == "layers.0");
  CHECK(trace.device_name(first.records[0].device) == "cuda:1");
  CHECK(first.records[1].kind == PlaceKind::module);
  CHECK(trace.placements()[1].records.empty());
}

TEST_CASE("a placement of no number, or of a kind that nobody knows, is left out") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  const PlacementRecord records[] = {record_of(*recorder, 0, PlaceKind::parameter),
                                     record_of(*recorder, 1, static_cast<PlaceKind>(99)),
                                     record_of(*recorder, 2, PlaceKind::buffer)};
  recorder->add_placements({}, records);
  const TraceFile trace = read_trace(*recorder);
  REQUIRE(trace.placements().size() == 1);
  REQUIRE(trace.placements()[0].records.size() == 1);
  CHECK(trace.placements()[0].records[0].number == 2);
}

TEST_CASE("rules and writes of attributes are read back") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  recorder->add_rule("rules.toml", 7, "rule\tname\ta on cpu");
  AttributeWritePayload write{};
  write.type = recorder->intern_string("Expert");
  write.name = recorder->intern_string("id");
  write.new_value = recorder->intern_string("3");
  write.last.line = 261;
  recorder->add_attribute_write(write);
  const TraceFile trace = read_trace(*recorder);
  REQUIRE(trace.rules().size() == 1);
  CHECK(trace.rules()[0].line == 7);
  CHECK(trace.rules()[0].text == "rule\tname\ta on cpu");
  REQUIRE(trace.attribute_writes().size() == 1);
  CHECK(trace.string(trace.attribute_writes()[0].type) == "Expert");
  CHECK(trace.attribute_writes()[0].last.line == 261);
}

TEST_CASE("what an object says of where its tensors belong is read back") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  SettingPayload setting{};
  setting.step = 2;
  setting.owner = recorder->intern_string("engine.optimizer");
  setting.type = recorder->intern_string("DeepSpeedZeroOptimizer_Stage3");
  setting.name = recorder->intern_string("subgroup_to_device[3]");
  setting.value = recorder->intern_string("cpu");
  recorder->add_setting(setting);
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  REQUIRE(trace.settings().size() == 1);
  CHECK(trace.settings()[0].step == 2);
  CHECK(trace.string(trace.settings()[0].owner) == "engine.optimizer");
  CHECK(trace.string(trace.settings()[0].name) == "subgroup_to_device[3]");
  CHECK(trace.string(trace.settings()[0].value) == "cpu");
}

}  // namespace
}  // namespace devsan::trace::testing
