// A trace file as bytes, for whoever changes it: where its sections and records are, and its sums made right again.
#pragma once

#include <cstring>
#include <vector>

#include "packing.h"
#include "trace/file_layout.h"

namespace devsan::fuzz {

template <class Value>
Value value_at(const Bytes& bytes, std::size_t offset) {
  Value value{};
  if (offset + sizeof(value) <= bytes.size()) std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

template <class Value>
void put(Bytes& bytes, std::size_t offset, Value value) {
  if (offset + sizeof(value) <= bytes.size()) std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

// Whether its header says where sections are that lie in it.
bool has_sections(const Bytes& file);
trace::Section section_of(const Bytes& file, trace::SectionKind kind);
// The size of the events, which are the last section, has changed by so much: the header says so.
void resize_events(Bytes& file, std::ptrdiff_t change);

struct Extent {
  std::size_t begin = 0;
  std::size_t size = 0;
};
void remove_record(Bytes& file, Extent record);
// The records of the events, with their headers.
std::vector<Extent> records_of(const Bytes& file);
// The texts of the strings, without their lengths; not those that are blank.
std::vector<Extent> strings_of(const Bytes& file);

void repair_sums(Bytes& file);

// The same trace with sections as long as what is used of them.
Bytes compacted(const Bytes& trace);

}  // namespace devsan::fuzz
