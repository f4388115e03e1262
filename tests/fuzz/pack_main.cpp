// Makes an input of the fuzzers of traces out of the traces of a run, for the corpus.
//
//   devsan_fuzz_pack OUTPUT TRACE…
#include <algorithm>
#include <fstream>
#include <iterator>

#include "trace/fact_layout.h"
#include "trace_bytes.h"

namespace {

using namespace devsan::fuzz;
namespace trace = devsan::trace;

// Long files of libraries, and the names of the thousands of operators that nothing in the trace speaks of, make an
// input slow to read and say nothing.
constexpr std::size_t kLongFile = 6000;

void leave_out_long_files(Bytes& file) {
  std::vector<Extent> records = records_of(file);
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    const auto kind = value_at<trace::RecordHeader>(file, record->begin).kind;
    if (kind == trace::RecordKind::SourceFile && record->size >= kLongFile) remove_record(file, *record);
  }
}

// Whatever is the number of an operator in what speaks of operators counts as one.
std::vector<bool> spoken_of(const Bytes& file) {
  std::vector<bool> spoken(1 << 16);
  for (const auto kind : {trace::SectionKind::lineage, trace::SectionKind::threads, trace::SectionKind::events}) {
    const trace::Section section = section_of(file, kind);
    for (std::uint64_t at = 0; at + 2 <= section.size; at += 2) {
      spoken[value_at<std::uint16_t>(file, section.offset + at)] = true;
    }
  }
  return spoken;
}

void blank_other_operators(Bytes& file) {
  const std::vector<bool> spoken = spoken_of(file);
  const trace::Section names = section_of(file, trace::SectionKind::operators);
  const trace::Section strings = section_of(file, trace::SectionKind::strings);
  for (std::size_t i = 1; i < names.size / sizeof(trace::StringId); ++i) {
    const auto name = value_at<std::uint32_t>(file, names.offset + i * sizeof(trace::StringId));
    if (spoken[i]) continue;
    const std::size_t text = strings.offset + name + sizeof(std::uint32_t);
    const auto size = value_at<std::uint32_t>(file, strings.offset + name);
    std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(text), size, std::uint8_t{0});
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  std::vector<Bytes> files;
  for (int i = 2; i < count; ++i) {
    std::ifstream in(arguments[i], std::ios::binary);
    const Bytes trace{std::istreambuf_iterator<char>(in), {}};
    if (!has_sections(trace)) return 1;
    files.push_back(compacted(trace));
    leave_out_long_files(files.back());
    blank_other_operators(files.back());
    repair_sums(files.back());
  }
  const Bytes input = packed(files);
  std::ofstream out(arguments[1], std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
  return out.flush() ? 0 : 1;
}
