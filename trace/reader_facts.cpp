// The facts of meetings and the texts of files, as they are read.
#include <algorithm>

#include "trace/reader_loader.h"
#include "trace/record_reading.h"

namespace devsan::trace {
namespace {

bool known(ObjectKind kind) {
  switch (kind) {
#define DEVSAN_OBJECT(enumerator, number, name) case ObjectKind::enumerator:
#include "trace/fact_kinds.def"
    return true;
  }
  return false;
}

bool known(FactLinkKind kind) {
  switch (kind) {
    case FactLinkKind::unknown:
      return false;
#define DEVSAN_LINK(enumerator, number, name) case FactLinkKind::enumerator:
#include "trace/fact_kinds.def"
      return true;
  }
  return false;
}

bool known(VariableKind kind) {
  return kind != VariableKind::unknown && kind <= VariableKind::global;
}

bool known(CopyKind kind) {
  return kind != CopyKind::unknown && kind <= CopyKind::pinned;
}

bool known(PlaceKind kind) {
  return kind != PlaceKind::none && kind <= PlaceKind::module;
}

// Of kinds that a later version may add, and of objects that are not there, nothing is told.
void make_sound(MeetingFacts& facts) {
  const std::size_t count = facts.objects.size();
  for (ObjectFact& object : facts.objects) {
    if (!known(object.kind)) object.kind = ObjectKind::other;
    object.operand = std::max(object.operand, kNoOperand);
  }
  std::erase_if(facts.links,
                [&](const LinkFact& link) { return link.from >= count || link.to >= count || !known(link.kind); });
  std::erase_if(facts.variables,
                [&](const VariableFact& variable) { return variable.object >= count || !known(variable.kind); });
  std::erase_if(facts.copies, [](const CopyFact& copy) { return !known(copy.kind); });
}

}  // namespace

bool TraceFile::Loader::take_facts(std::span<const std::byte> payload) {
  if (payload.size() < sizeof(FactsPayload)) return false;
  MeetingFacts facts;
  facts.fixed = read<FactsPayload>(payload);
  const FactsPayload& fixed = facts.fixed;
  std::span<const std::byte> rest = payload.subspan(sizeof(FactsPayload));
  const std::uint64_t needed =
      std::uint64_t{fixed.objects} * sizeof(ObjectFact) + std::uint64_t{fixed.links} * sizeof(LinkFact) +
      std::uint64_t{fixed.variables} * sizeof(VariableFact) + std::uint64_t{fixed.copies} * sizeof(CopyFact);
  if (needed > rest.size() || whole_words(needed) != rest.size()) return false;
  facts.objects = take<ObjectFact>(rest, fixed.objects);
  facts.links = take<LinkFact>(rest, fixed.links);
  facts.variables = take<VariableFact>(rest, fixed.variables);
  facts.copies = take<CopyFact>(rest, fixed.copies);
  make_sound(facts);
  file_.facts_.insert_or_assign(fixed.meeting, std::move(facts));
  return true;
}

bool TraceFile::Loader::take_source_file(std::span<const std::byte> payload) {
  if (payload.size() < sizeof(SourceFilePayload)) return false;
  const auto fixed = read<SourceFilePayload>(payload);
  const std::span<const std::byte> rest = payload.subspan(sizeof(fixed));
  if (fixed.kept > rest.size() || whole_words(fixed.kept) != rest.size()) return false;
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), fixed.kept);
  file_.source_files_.emplace(fixed.file, SourceFile{fixed.size, fixed.hash, text});
  return true;
}

bool TraceFile::Loader::take_placements(std::span<const std::byte> payload) {
  if (payload.size() < sizeof(PlacementsPayload)) return false;
  Placements placements;
  placements.fixed = read<PlacementsPayload>(payload);
  std::span<const std::byte> rest = payload.subspan(sizeof(PlacementsPayload));
  if (rest.size() != placements.fixed.count * sizeof(PlacementRecord)) return false;
  placements.records = take<PlacementRecord>(rest, placements.fixed.count);
  std::erase_if(placements.records,
                [](const PlacementRecord& record) { return record.number == 0 || !known(record.kind); });
  file_.placements_.push_back(std::move(placements));
  return true;
}

const MeetingFacts* TraceFile::facts_of(const Meeting& meeting) const {
  const auto found = facts_.find(meeting.offset);
  return found != facts_.end() ? &found->second : nullptr;
}

}  // namespace devsan::trace
