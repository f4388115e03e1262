#include "trace_bytes.h"

#include <algorithm>
#include <array>

#include "trace/crc32c.h"
#include "trace/record_sums.h"

namespace devsan::fuzz {

using trace::FileHeader;
using trace::RecordHeader;
using trace::Section;
using trace::SectionKind;

namespace {

constexpr std::size_t kAlignment = 8;

std::size_t place_of(SectionKind kind) {
  return offsetof(FileHeader, sections) + (static_cast<std::size_t>(kind) - 1) * sizeof(Section);
}

std::size_t whole(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Section section_of(const Bytes& file, SectionKind kind) {
  return value_at<Section>(file, place_of(kind));
}

bool has_sections(const Bytes& file) {
  if (file.size() < sizeof(FileHeader)) return false;
  for (const Section& section : value_at<FileHeader>(file, 0).sections) {
    if (section.offset > file.size() || section.size > file.size() - section.offset) return false;
  }
  return true;
}

void resize_events(Bytes& file, std::ptrdiff_t change) {
  const auto grown = [&](std::uint64_t size) { return size + static_cast<std::uint64_t>(change); };
  Section events = section_of(file, SectionKind::events);
  events.size = grown(events.size);
  put(file, place_of(SectionKind::events), events);
  for (const std::size_t counter : {offsetof(FileHeader, file_size), offsetof(FileHeader, events_used)}) {
    put(file, counter, grown(value_at<std::uint64_t>(file, counter)));
  }
}

void remove_record(Bytes& file, Extent record) {
  const auto begin = file.begin() + static_cast<std::ptrdiff_t>(record.begin);
  file.erase(begin, begin + static_cast<std::ptrdiff_t>(record.size));
  resize_events(file, -static_cast<std::ptrdiff_t>(record.size));
}

std::vector<Extent> records_of(const Bytes& file) {
  std::vector<Extent> records;
  if (!has_sections(file)) return records;
  const Section events = section_of(file, SectionKind::events);
  const std::size_t end = events.offset + events.size;
  for (std::size_t at = events.offset; at + sizeof(RecordHeader) <= end;) {
    const auto header = value_at<RecordHeader>(file, at);
    const bool sound = header.sync == trace::kRecordSync && header.size >= sizeof(header) &&
                       header.size % kAlignment == 0 && header.size <= end - at;
    if (sound) records.push_back({at, header.size});
    at += sound ? header.size : kAlignment;
  }
  return records;
}

std::vector<Extent> strings_of(const Bytes& file) {
  std::vector<Extent> strings;
  if (!has_sections(file)) return strings;
  const Section section = section_of(file, SectionKind::strings);
  const std::size_t end = section.offset + section.size;
  for (std::size_t at = section.offset + sizeof(std::uint32_t); at + sizeof(std::uint32_t) < end;) {
    const std::size_t size = value_at<std::uint32_t>(file, at);
    at += sizeof(std::uint32_t);
    if (size > end - at) break;
    if (size > 0 && file[at] != 0) strings.push_back({at, size});
    at += (size + 3) / 4 * 4;
  }
  return strings;
}

void repair_sums(Bytes& file) {
  for (const Extent& record : records_of(file)) {
    auto header = value_at<RecordHeader>(file, record.begin);
    const auto payload = std::as_bytes(std::span(file).subspan(record.begin, record.size)).subspan(sizeof(header));
    const std::size_t left_out = trace::bytes_without_sum(header.kind);
    if (payload.size() < left_out) continue;
    header.checksum = trace::crc32c(payload.subspan(left_out));
    put(file, record.begin, header);
  }
}

Bytes compacted(const Bytes& trace) {
  const auto old = value_at<FileHeader>(trace, 0);
  const std::array<std::uint64_t, trace::kSectionCount> used = {old.strings_used,
                                                                old.operators_used * sizeof(trace::StringId),
                                                                old.sites_used * sizeof(trace::Site),
                                                                old.lineage_used * sizeof(trace::LineageNode),
                                                                old.threads_used * sizeof(trace::ThreadRing),
                                                                old.events_used};
  Bytes out(trace.begin(), trace.begin() + sizeof(FileHeader));
  for (std::size_t i = 0; i < used.size(); ++i) {
    Section section = old.sections[i];
    const auto begin = trace.begin() + static_cast<std::ptrdiff_t>(section.offset);
    section.offset = out.size();
    section.size = std::min(used[i], section.size);
    out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(section.size));
    out.resize(whole(out.size()));
    put(out, place_of(section.kind), section);
  }
  put(out, offsetof(FileHeader, file_size), std::uint64_t{out.size()});
  return out;
}

}  // namespace devsan::fuzz
