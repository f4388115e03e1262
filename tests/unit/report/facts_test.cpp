#include "report/model/facts.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "report/findings/collect.h"
#include "report/render/render_facts.h"
#include "trace_builder.h"

namespace devsan::report {
namespace {

using trace::FactLinkKind;
using trace::ObjectKind;
using trace::VariableKind;

const Spot kForward{"/srv/app/net.py", 5, "Net.forward"};
const Spot kMain{"/srv/app/main.py", 9, "main"};

trace::ObjectFact object_of(TraceBuilder& builder, ObjectKind kind, const char* type, std::int8_t operand = -1) {
  trace::ObjectFact object{};
  object.kind = kind;
  object.type = builder.recorder().intern_string(type);
  object.operand = operand;
  if (operand >= 0) object.storage = static_cast<std::uint32_t>(operand) + 1;
  return object;
}

// A module that has its second operand in a list, a function of main() that has the module, and a global device.
void record_program(TraceBuilder& builder) {
  trace::Recorder& recorder = builder.recorder();
  trace::MeetingPayload* meeting = builder.meeting(
      {.frames = {kForward, kMain}, .operands = {{"self", "cuda:0", {2}, "x"}, {"other", "cpu", {2}, "self.all[0]"}}});
  std::vector<trace::ObjectFact> objects = {object_of(builder, ObjectKind::module, "net.Net"),
                                            object_of(builder, ObjectKind::list, "list"),
                                            object_of(builder, ObjectKind::tensor, "torch.Tensor", 0),
                                            object_of(builder, ObjectKind::tensor, "torch.Tensor", 1),
                                            object_of(builder, ObjectKind::device, "torch.device"),
                                            object_of(builder, ObjectKind::boolean, "bool")};
  objects[4].text = recorder.intern_string("cuda:0");
  objects[5].flags = trace::kHasNumber;
  objects[5].number = 1;
  const trace::LinkFact links[] = {{1, 3, trace::StringId::none, 0, FactLinkKind::entry, {}},
                                   {0, 1, recorder.intern_string("all"), -1, FactLinkKind::attribute, {}},
                                   {0, 5, recorder.intern_string("training"), -1, FactLinkKind::attribute, {}}};
  const trace::VariableFact variables[] = {
      {0, 0, recorder.intern_string("self"), VariableKind::local, {}},
      {0, 2, recorder.intern_string("x"), VariableKind::local, {}},
      {1, 0, recorder.intern_string("net"), VariableKind::cell, {}},
      {1, 4, recorder.intern_string("DEVICE"), VariableKind::global, {}},
      {trace::kNoFrame, 0, recorder.intern_string("waiting"), VariableKind::local, {}}};
  const trace::CopyFact copies[] = {{2, builder.site(kMain), trace::LineageId::none, trace::CopyKind::moved_away,
                                     recorder.intern_device("cuda:0"), 0}};
  recorder.add_facts(meeting, {}, objects, links, variables, copies);
  recorder.add_source_file(recorder.intern_string(kForward.file), "class Net: pass\n", true);
  recorder.add_source_file(recorder.intern_string(kMain.file), "net = Net()\n", false);
}

FactsOfRun facts_in(const std::filesystem::path& directory, Reading* reading = nullptr) {
  FactsOfRun facts;
  const std::filesystem::path paths[] = {directory};
  Reading read = read_traces(paths, nullptr, RunsRead::newest, &facts);
  if (reading != nullptr) *reading = std::move(read);
  return facts;
}

TEST_CASE("Facts are asked by variables, attributes and operands") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  record_program(builder);
  const FactsOfRun run = facts_in(directory.path());
  REQUIRE(run.meetings.size() == 1);
  const Facts& facts = run.meetings[0];
  CHECK(facts.recorded);
  CHECK(facts.object_of_operand(1) == ObjectIndex{3});
  CHECK(facts.variable(0, "self") == ObjectIndex{0});
  CHECK(facts.variable(1, "net") == ObjectIndex{0});
  CHECK_FALSE(facts.variable(0, "net"));
  CHECK(facts.variable(1, "DEVICE") == ObjectIndex{4});
  CHECK_FALSE(facts.variable(0, "DEVICE"));  // of another module
  CHECK(facts.member(0, FactLinkKind::attribute, "all") == ObjectIndex{1});
  CHECK_FALSE(facts.member(0, FactLinkKind::buffer, "all"));
  CHECK(facts.held_by(0).size() == 2);
  REQUIRE(facts.holders_of(3).size() == 1);
  CHECK(facts.holders_of(3)[0]->from == 1);
  CHECK(facts.copies_of(2).size() == 1);
  CHECK(facts.copies_of(0).empty());
}

TEST_CASE("The JSON names each meeting by its finding and holds the texts that were kept") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  record_program(builder);
  builder.meeting({.op = "aten::mul.Tensor", .frames = {kMain}, .operands = {{"self", "cpu"}, {"other", "cuda:0"}}});
  Reading reading;
  const FactsOfRun facts = facts_in(directory.path(), &reading);
  const auto json = nlohmann::json::parse(render_facts(facts, reading.sources));
  CHECK(json["schema"] == "devsan-facts/1");
  REQUIRE(json["meetings"].size() == 2);
  CHECK(json["meetings"][0]["finding"] == reading.report.findings[0].id);
  const auto& meeting = json["meetings"][0];
  CHECK(meeting["frames"][1]["function"] == "main");
  CHECK(meeting["operands"][1]["object"] == 3);
  CHECK(meeting["objects"][4]["text"] == "cuda:0");
  CHECK(meeting["objects"][5]["value"] == true);
  CHECK(meeting["links"][0]["name"] == "all");
  CHECK(meeting["variables"][4]["frame"] == nullptr);
  CHECK(meeting["copies"][0]["kind"] == "moved_away");
  CHECK(json["meetings"][1]["recorded"] == false);
  CHECK(json["sources"] == nlohmann::json{{kForward.file, "class Net: pass\n"}});
  CHECK(json["files"][kMain.file]["size"] == 12);
}

TEST_CASE("Bytes that are no UTF-8 do not keep the JSON from being written") {
  const TemporaryDirectory directory;
  TraceBuilder builder(directory.path());
  record_program(builder);
  builder.recorder().add_source_file(builder.recorder().intern_string("/srv/latin.py"), "# caf\xe9\n", true);
  Reading reading;
  const FactsOfRun facts = facts_in(directory.path(), &reading);
  const auto json = nlohmann::json::parse(render_facts(facts, reading.sources));
  CHECK(json["sources"]["/srv/latin.py"] == "# caf\xef\xbf\xbd\n");
}

}  // namespace
}  // namespace devsan::report
