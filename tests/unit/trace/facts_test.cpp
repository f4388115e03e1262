// Facts of meetings and texts of files, written and read back.
#include <catch2/catch.hpp>
#include <string>

#include "sample.h"
#include "trace/crc32c.h"
#include "trace/source_hash.h"

namespace devsan::trace::testing {
namespace {

ObjectFact object_named(Recorder& recorder, const char* type) {
  ObjectFact object{};
  object.type = recorder.intern_string(type);
  object.operand = kNoOperand;
  return object;
}

void add_one_object(Recorder& recorder, const MeetingPayload* meeting, const char* type) {
  const ObjectFact objects[] = {object_named(recorder, type)};
  recorder.add_facts(meeting, {}, objects, {}, {}, {});
}

TEST_CASE("facts belong to their meeting, in whatever order they were written") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  MeetingPayload* const first = add_numbered_meeting(*recorder, 1);
  MeetingPayload* const second = add_numbered_meeting(*recorder, 2);
  add_numbered_meeting(*recorder, 3);
  add_one_object(*recorder, second, "Second");
  add_one_object(*recorder, first, "First");
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  REQUIRE(trace.meetings().size() == 3);
  const auto type_beside = [&](std::size_t meeting) {
    const MeetingFacts* facts = trace.facts_of(trace.meetings()[meeting]);
    return facts != nullptr ? std::string(trace.string(facts->objects.at(0).type)) : "none";
  };
  CHECK(type_beside(0) == "First");
  CHECK(type_beside(1) == "Second");
  CHECK(type_beside(2) == "none");
}

TEST_CASE("what was recorded is read back") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  record_sample(*recorder);
  const TraceFile trace = read_trace(*recorder);
  const MeetingFacts* facts = trace.facts_of(trace.meetings().at(0));
  REQUIRE(facts != nullptr);
  CHECK(facts->fixed.flags == kFactsCut);
  REQUIRE(facts->objects.size() == 3);
  CHECK(facts->objects[0].kind == ObjectKind::module);
  CHECK(facts->objects[1].number == 100'000);
  CHECK(facts->objects[2].operand == 1);
  REQUIRE(facts->links.size() == 2);
  CHECK(facts->links[1].index == 17);
  REQUIRE(facts->variables.size() == 1);
  CHECK(trace.string(facts->variables[0].name) == "self");
  REQUIRE(facts->copies.size() == 1);
  CHECK(facts->copies[0].kind == CopyKind::moved_away);
  REQUIRE(trace.source_files().size() == 1);
  CHECK(trace.source_files().begin()->second.text == "import torch\n\nnet = 1");
}

TEST_CASE("links and variables of objects that are not there are left out") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  const ObjectFact objects[] = {object_named(*recorder, "A"), object_named(*recorder, "B")};
  const LinkFact links[] = {{0, 1, StringId::none, -1, FactLinkKind::attribute, {}},
                            {0, 2, StringId::none, -1, FactLinkKind::attribute, {}},
                            {9, 1, StringId::none, -1, FactLinkKind::attribute, {}},
                            {0, 1, StringId::none, -1, FactLinkKind{200}, {}}};
  const VariableFact variables[] = {{0, 1, StringId::none, VariableKind::local, {}},
                                    {0, 2, StringId::none, VariableKind::local, {}},
                                    {0, 1, StringId::none, VariableKind{77}, {}}};
  const CopyFact copies[] = {{1, SiteId::none, LineageId::none, CopyKind{9}, DeviceSlot::none, 0}};
  recorder->add_facts(add_numbered_meeting(*recorder, 1), {}, objects, links, variables, copies);
  const TraceFile trace = read_trace(*recorder);
  const MeetingFacts* facts = trace.facts_of(trace.meetings().at(0));
  REQUIRE(facts != nullptr);
  CHECK(facts->links.size() == 1);
  CHECK(facts->variables.size() == 1);
  CHECK(facts->copies.empty());
}

TEST_CASE("counts that do not fit the record are damage, and nothing else is lost") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  add_one_object(*recorder, add_numbered_meeting(*recorder, 1), "A");
  add_numbered_meeting(*recorder, 2);
  std::vector<std::byte> bytes = bytes_of(recorder->path());
  const auto& header = *reinterpret_cast<const FileHeader*>(bytes.data());
  std::uint64_t at = header.sections[kSectionCount - 1].offset;
  auto* record = reinterpret_cast<RecordHeader*>(bytes.data() + at);
  while (record->kind != RecordKind::Facts)
    record = reinterpret_cast<RecordHeader*>(bytes.data() + (at += record->size));
  auto& fixed = *reinterpret_cast<FactsPayload*>(record + 1);
  const auto reseal = [&] {
    record->checksum = crc32c(std::span(bytes).subspan(at + sizeof(RecordHeader), record->size - sizeof(RecordHeader)));
    write_bytes(directory.path() / "changed", bytes);
    return read_trace(directory.path() / "changed");
  };
  for (std::uint32_t* count : {&fixed.objects, &fixed.links, &fixed.variables, &fixed.copies}) {
    for (const std::uint32_t wrong : {2u, 1000u, ~0u}) {
      const std::uint32_t right = std::exchange(*count, wrong);
      const TraceFile trace = reseal();
      CHECK(trace.damage().size() == 1);
      CHECK(trace.meetings().size() == 2);
      CHECK(trace.facts_of(trace.meetings()[0]) == nullptr);
      *count = right;
    }
  }
  CHECK(reseal().damage().empty());
}

TEST_CASE("a file is wanted once") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  const StringId one = recorder->intern_string("/a.py");
  const StringId other = recorder->intern_string("/b.py");
  CHECK(recorder->wants_source_file(one));
  CHECK_FALSE(recorder->wants_source_file(one));
  CHECK(recorder->wants_source_file(other));
  CHECK_FALSE(recorder->wants_source_file(StringId::none));
}

TEST_CASE("of a long file, or where no text is wanted, size and hash are kept") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());
  const std::string large((std::size_t{256} << 10) + 1, 'x');
  const std::string small = "x = 1\n";
  recorder->add_source_file(recorder->intern_string("/large.py"), large, true);
  recorder->add_source_file(recorder->intern_string("/small.py"), small, false);
  const TraceFile trace = read_trace(*recorder);
  REQUIRE(trace.source_files().size() == 2);
  for (const auto& [file, source] : trace.source_files()) {
    const std::string& text = trace.string(file) == "/large.py" ? large : small;
    CHECK(source.text.empty());
    CHECK(source.size == text.size());
    CHECK(source.hash == source_hash(text));
  }
}

TEST_CASE("texts and facts leave room for meetings, and are counted where they find none") {
  const TemporaryDirectory directory;
  const auto recorder = open_recorder(directory.path());  // of the smallest size
  const std::string text(std::size_t{100} << 10, 'x');
  for (int file = 0; file < 40; ++file) {
    recorder->add_source_file(recorder->intern_string("/" + std::to_string(file)), text, true);
  }
  const std::vector<ObjectFact> objects(1000, object_named(*recorder, "A"));
  MeetingPayload* const meeting = add_numbered_meeting(*recorder, 1);
  for (int round = 0; round < 100; ++round) recorder->add_facts(meeting, {}, objects, {}, {}, {});
  for (int number = 2; number < 100; ++number) REQUIRE(add_numbered_meeting(*recorder, number) != nullptr);
  const TraceFile trace = read_trace(*recorder);
  CHECK(trace.damage().empty());
  CHECK(trace.meetings().size() == 99);
  CHECK(trace.facts_of(trace.meetings()[0]) != nullptr);
  CHECK(trace.source_files().size() >= 1);
  CHECK(trace.source_files().size() < 40);
  CHECK(trace.lost_events() == 0);
  CHECK(trace.lost_facts() > 0);
}

}  // namespace
}  // namespace devsan::trace::testing
