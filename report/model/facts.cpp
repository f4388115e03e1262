#include "report/model/facts.h"

#include <algorithm>

#include "report/model/frames.h"
#include "report/model/operands.h"

namespace devsan::report {

std::string_view name_of(trace::ObjectKind kind) {
  switch (kind) {
#define DEVSAN_OBJECT(enumerator, number, name) \
  case trace::ObjectKind::enumerator:           \
    return name;
#include "trace/fact_kinds.def"
  }
  return "";
}

std::string_view name_of(trace::FactLinkKind kind) {
  switch (kind) {
    case trace::FactLinkKind::unknown:
      break;
#define DEVSAN_LINK(enumerator, number, name) \
  case trace::FactLinkKind::enumerator:       \
    return name;
#include "trace/fact_kinds.def"
  }
  return "";
}

std::string_view name_of(trace::VariableKind kind) {
  switch (kind) {
    case trace::VariableKind::unknown:
      break;
#define DEVSAN_VARIABLE(enumerator, number, name) \
  case trace::VariableKind::enumerator:           \
    return name;
#include "trace/fact_kinds.def"
  }
  return "";
}

std::string_view name_of(trace::CopyKind kind) {
  switch (kind) {
    case trace::CopyKind::unknown:
      break;
#define DEVSAN_COPY(enumerator, number, name) \
  case trace::CopyKind::enumerator:           \
    return name;
#include "trace/fact_kinds.def"
  }
  return "";
}

std::vector<const LinkFact*> Facts::held_by(ObjectIndex object) const {
  std::vector<const LinkFact*> held;
  const auto [begin, end] = std::ranges::equal_range(links, object, {}, &LinkFact::from);
  for (auto link = begin; link != end; ++link) held.push_back(&*link);
  return held;
}

std::vector<const LinkFact*> Facts::holders_of(ObjectIndex object) const {
  std::vector<const LinkFact*> holders;
  for (const LinkFact& link : links) {
    if (link.to == object) holders.push_back(&link);
  }
  return holders;
}

std::optional<ObjectIndex> Facts::member(ObjectIndex object, trace::FactLinkKind way, std::string_view name) const {
  for (const LinkFact* link : held_by(object)) {
    if (link->kind == way && link->name == name) return link->to;
  }
  return std::nullopt;
}

std::optional<ObjectIndex> Facts::variable(std::size_t frame, std::string_view name) const {
  for (const VariableFact& one : variables) {
    if (one.frame == frame && one.name == name && one.kind != trace::VariableKind::global) return one.object;
  }
  if (frame >= frames.size()) return std::nullopt;
  for (const VariableFact& one : variables) {
    if (one.kind != trace::VariableKind::global || one.name != name || !one.frame || *one.frame >= frames.size())
      continue;
    if (frames[*one.frame].file == frames[frame].file) return one.object;
  }
  return std::nullopt;
}

std::optional<ObjectIndex> Facts::object_of_operand(std::size_t operand) const {
  const auto found = std::ranges::find_if(
      objects, [&](const ObjectFact& object) { return object.operand == operand && !object.shares_memory; });
  if (found == objects.end()) return std::nullopt;
  return static_cast<ObjectIndex>(found - objects.begin());
}

std::vector<const CopyFact*> Facts::copies_of(std::uint32_t storage) const {
  std::vector<const CopyFact*> all;
  for (const CopyFact& copy : copies) {
    if (copy.storage == storage && storage != 0) all.push_back(&copy);
  }
  return all;
}

namespace {

ObjectFact object_of(const trace::TraceFile& trace, const trace::ObjectFact& record, std::size_t operands) {
  ObjectFact object;
  object.kind = record.kind;
  object.type = trace.string(record.type);
  object.text = trace.string(record.text);
  if ((record.flags & trace::kHasNumber) != 0) object.number = record.number;
  object.file = trace.string(record.file);
  object.function = trace.string(record.function);
  object.line = std::max(record.line, 0);
  object.device = trace.device_name(record.device);
  object.lineage = lineage_of(trace, record.lineage);
  object.storage = record.storage;
  if (record.operand >= 0 && static_cast<std::size_t>(record.operand) < operands) {
    object.operand = static_cast<std::size_t>(record.operand);
  }
  object.shares_memory = (record.flags & trace::kSharesMemory) != 0;
  object.requires_grad = (record.flags & trace::kObjectRequiresGrad) != 0;
  object.leaf = (record.flags & trace::kObjectLeaf) != 0;
  object.cut = (record.flags & trace::kObjectCut) != 0;
  return object;
}

CopyFact copy_of(const trace::TraceFile& trace, const trace::CopyFact& record) {
  CopyFact copy;
  copy.kind = record.kind;
  copy.storage = record.storage;
  copy.device = trace.device_name(record.device);
  if (auto frame = user_frame_of(trace, record.site)) copy.user = std::move(*frame);
  if (auto frame = innermost_frame_of(trace, record.site)) copy.innermost = std::move(*frame);
  copy.calls = call_frames_of(trace, record.calls);
  return copy;
}

void add_recorded(const trace::TraceFile& trace, const trace::MeetingFacts& record, Facts& facts) {
  facts.recorded = true;
  facts.cut = (record.fixed.flags & trace::kFactsCut) != 0;
  facts.microseconds = record.fixed.microseconds;
  for (const trace::ObjectFact& object : record.objects) {
    facts.objects.push_back(object_of(trace, object, facts.operands.size()));
  }
  for (const trace::LinkFact& link : record.links) {
    // The number that a key is may be negative.
    const bool has_index = link.index >= 0 || link.kind == trace::FactLinkKind::numbered_entry;
    facts.links.push_back({link.kind, link.from, link.to, std::string(trace.string(link.name)),
                           has_index ? std::optional<int>(link.index) : std::nullopt});
  }
  std::ranges::stable_sort(facts.links, {}, &LinkFact::from);
  for (const trace::VariableFact& variable : record.variables) {
    VariableFact& fact = facts.variables.emplace_back();
    fact.kind = variable.kind;
    if (variable.frame < facts.frames.size()) fact.frame = variable.frame;
    fact.name = trace.string(variable.name);
    fact.object = variable.object;
  }
  for (const trace::CopyFact& copy : record.copies) facts.copies.push_back(copy_of(trace, copy));
}

Facts facts_of(const trace::TraceFile& trace, const trace::Meeting& meeting, const Finding& finding) {
  Facts facts;
  facts.finding = finding.id;
  facts.pid = trace.header().pid;
  facts.rank = trace.rank();
  facts.kind = finding.kind;
  facts.op = finding.op;
  facts.message = finding.message;
  facts.raised = finding.raised;
  facts.phase = finding.phase;
  facts.frames = frames_of(trace, meeting.frames);
  facts.forward = frames_of(trace, meeting.forward_frames);
  facts.operands = operands_of(trace, meeting);
  if (const trace::MeetingFacts* record = trace.facts_of(meeting)) add_recorded(trace, *record, facts);
  return facts;
}

}  // namespace

void add_sources(const trace::TraceFile& trace, Sources& sources) {
  for (const auto& [id, source] : trace.source_files()) {
    SourceText& text = sources[std::string(trace.string(id))];
    if (text.text || (text.hash != 0 && source.text.empty())) continue;
    text.size = source.size;
    text.hash = source.hash;
    if (!source.text.empty()) text.text = source.text;
  }
}

void FactsOfRun::add(const trace::TraceFile& trace, const std::vector<Finding>& findings) {
  for (std::size_t k = 0; k < findings.size(); ++k) {
    meetings.push_back(facts_of(trace, trace.meetings()[k], findings[k]));
  }
}

}  // namespace devsan::report
