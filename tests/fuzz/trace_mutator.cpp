// Changes traces where it matters: a byte that is changed at random is nearly always one of a record whose sum is then
// wrong, and says nothing but that sums are compared. Most changes here keep what surrounds them sound, and make the
// sums right again.
#include <algorithm>
#include <array>
#include <random>

#include "trace/collective_layout.h"
#include "trace/fact_layout.h"
#include "trace/memory_layout.h"
#include "trace/placement_layout.h"
#include "trace_bytes.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace devsan::fuzz {
namespace {

using trace::FileHeader;
using trace::RecordHeader;
using trace::RecordKind;
using trace::SectionKind;

// A list in a record: of which kind, where its count is, and what one entry takes. `first`: where the first list
// begins.
struct List {
  RecordKind kind;
  std::size_t first;
  std::size_t count_at;
  std::size_t count_size;
  std::size_t entry_size;
};
constexpr List kLists[] = {
    {RecordKind::Meeting, sizeof(trace::MeetingPayload), offsetof(trace::MeetingPayload, operands), 2,
     sizeof(trace::OperandRecord)},
    {RecordKind::Meeting, sizeof(trace::MeetingPayload), offsetof(trace::MeetingPayload, frames), 2,
     sizeof(trace::FrameRecord)},
    {RecordKind::Meeting, sizeof(trace::MeetingPayload), offsetof(trace::MeetingPayload, native_frames), 2,
     sizeof(trace::NativeFrame)},
    {RecordKind::Traffic, sizeof(trace::TrafficPayload), offsetof(trace::TrafficPayload, operands), 2,
     sizeof(trace::OperandRecord)},
    {RecordKind::Traffic, sizeof(trace::TrafficPayload), offsetof(trace::TrafficPayload, frames), 2,
     sizeof(trace::FrameRecord)},
    {RecordKind::Facts, sizeof(trace::FactsPayload), offsetof(trace::FactsPayload, objects), 4,
     sizeof(trace::ObjectFact)},
    {RecordKind::Facts, sizeof(trace::FactsPayload), offsetof(trace::FactsPayload, links), 4, sizeof(trace::LinkFact)},
    {RecordKind::Facts, sizeof(trace::FactsPayload), offsetof(trace::FactsPayload, copies), 4, sizeof(trace::CopyFact)},
    {RecordKind::Placements, sizeof(trace::PlacementsPayload), offsetof(trace::PlacementsPayload, count), 2,
     sizeof(trace::PlacementRecord)},
    {RecordKind::LiveMemory, sizeof(trace::LiveMemoryPayload), offsetof(trace::LiveMemoryPayload, rows), 2,
     sizeof(trace::LiveMemoryRow)},
    {RecordKind::CollectiveGroup, sizeof(trace::CollectiveGroupPayload), offsetof(trace::CollectiveGroupPayload, ranks),
     4, sizeof(std::int32_t)},
    {RecordKind::Failure, sizeof(trace::FailurePayload), offsetof(trace::FailurePayload, frames), 2,
     sizeof(trace::FrameRecord)},
    {RecordKind::WaitingStack, sizeof(trace::WaitingStackPayload), offsetof(trace::WaitingStackPayload, frames), 2,
     sizeof(trace::FrameRecord)},
};

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  void change(std::vector<Bytes>& files) {
    if (below(12) == 0) return change_files(files);
    Bytes& file = files[below(files.size())];
    if (!has_sections(file) || below(20) == 0) return change_anything(file);
    for (std::size_t times = 1 + below(3); times > 0; --times) change_part(file);
    if (below(16) != 0) repair_sums(file);
  }

  // A record of one file behind those of another.
  void cross(std::vector<Bytes>& files, const std::vector<Bytes>& others) {
    Bytes& file = files[below(files.size())];
    const Bytes& other = others[below(others.size())];
    const std::vector<Extent> records = records_of(other);
    if (!has_sections(file) || records.empty() || below(4) == 0) {
      if (files.size() < kMostFiles) files.push_back(other);
      return;
    }
    insert(file, file.size(), other, records[below(records.size())]);
  }

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void change_files(std::vector<Bytes>& files) {
    const std::size_t at = below(files.size());
    switch (below(3)) {
      case 0:
        if (files.size() > 1) files.erase(files.begin() + static_cast<std::ptrdiff_t>(at));
        return;
      case 1:
        files[at].resize(below(files[at].size() + 1));
        return;
      default:
        if (files.size() == kMostFiles) return;
        files.push_back(files[at]);
        put(files.back(), offsetof(FileHeader, rank), static_cast<std::int32_t>(files.size() - 1));
    }
  }

  void change_part(Bytes& file) {
    const std::vector<Extent> records = records_of(file);
    const std::size_t choice = below(16);
    if (choice < 2) return change_text(file, pick(strings_of(file)));
    if (choice < 4) return change_table(file);
    if (choice == 4) return change_word(file, {0, 1024});
    if (records.empty()) return change_anything(file);
    const Extent record = records[below(records.size())];
    const Extent payload{record.begin + sizeof(RecordHeader), record.size - sizeof(RecordHeader)};
    if (choice < 10)
      return change_word(file, {payload.begin, below(2) == 0 ? payload.size : std::min<std::size_t>(payload.size, 96)});
    if (choice == 10) return change_text(file, payload);
    if (choice < 13) return change_list(file, record);
    if (choice == 13) return insert(file, records[below(records.size())].begin, file, record);
    if (choice == 14) return remove_record(file, record);
    for (std::size_t times = below(64); times > 0; --times) insert(file, file.size(), file, record);
  }

  Extent pick(const std::vector<Extent>& extents) {
    return extents.empty() ? Extent{} : extents[below(extents.size())];
  }

  void change_table(Bytes& file) {
    constexpr std::array kTables = {SectionKind::operators, SectionKind::sites, SectionKind::lineage,
                                    SectionKind::threads};
    if (!has_sections(file)) return;
    const trace::Section section = section_of(file, kTables[below(kTables.size())]);
    change_word(file, {section.offset, section.size});
  }

  void change_anything(Bytes& file) {
    const std::size_t size = file.size();
    file.resize(std::min(size + 64, kMostBytes));
    file.resize(LLVMFuzzerMutate(file.data(), size, file.size()));
  }

  // Ids, counts, times and enumerators are words: one that is another word of the file, or close to the one it was, is
  // more likely to be taken for one.
  void change_word(Bytes& file, Extent in) {
    constexpr std::array<std::uint64_t, 10> kNumbers = {0,          1,          2,     255,        65535,
                                                        0x7FFFFFFF, 0x80000000, ~0ull, 1ull << 63, ~0ull >> 1};
    if (in.size < 8) return;
    const std::size_t width = std::size_t{1} << below(4);
    const std::size_t at = in.begin + below(in.size / width) * width;
    std::uint64_t value = value_at<std::uint64_t>(file, at);
    switch (below(4)) {
      case 0:
        value = kNumbers[below(kNumbers.size())];
        break;
      case 1:
        value = value_at<std::uint64_t>(file, in.begin + below(in.size / 4) * 4);
        break;
      case 2:
        value += below(33) - 16;
        break;
      default:
        value ^= std::uint64_t{1} << below(8 * width);
    }
    if (at + width <= file.size()) std::memcpy(file.data() + at, &value, width);
  }

  // Its size stays.
  void change_text(Bytes& file, Extent in) {
    if (in.size == 0) return;
    const auto begin = file.begin() + static_cast<std::ptrdiff_t>(in.begin);
    Bytes text(begin, begin + static_cast<std::ptrdiff_t>(in.size));
    LLVMFuzzerMutate(text.data(), text.size(), text.size());
    std::copy(text.begin(), text.end(), begin);
  }

  void change_list(Bytes& file, Extent record) {
    const auto kind = value_at<RecordHeader>(file, record.begin).kind;
    std::vector<List> lists;
    std::ranges::copy_if(kLists, std::back_inserter(lists), [&](const List& list) { return list.kind == kind; });
    if (lists.empty()) return;
    const List list = lists[below(lists.size())];
    const std::size_t counter = record.begin + sizeof(RecordHeader) + list.count_at;
    const std::size_t first = record.begin + sizeof(RecordHeader) + list.first;
    const std::size_t end = record.begin + record.size;
    const std::size_t count = 2 + 2 * below(8);  // sizes of records stay multiples of 8
    if (first + list.entry_size > end) return;
    const auto entry = file.begin() + static_cast<std::ptrdiff_t>(first);
    Bytes more;
    for (std::size_t i = 0; i < count; ++i)
      more.insert(more.end(), entry, entry + static_cast<std::ptrdiff_t>(list.entry_size));
    if (more.size() % 8 != 0 || file.size() + more.size() > kMostBytes) return;
    file.insert(entry, more.begin(), more.end());
    put(file, record.begin + offsetof(RecordHeader, size), static_cast<std::uint32_t>(record.size + more.size()));
    if (list.count_size == 2)
      put(file, counter, static_cast<std::uint16_t>(value_at<std::uint16_t>(file, counter) + count));
    if (list.count_size == 4)
      put(file, counter, static_cast<std::uint32_t>(value_at<std::uint32_t>(file, counter) + count));
    resize_events(file, static_cast<std::ptrdiff_t>(more.size()));
  }

  static void insert(Bytes& file, std::size_t at, const Bytes& from, Extent record) {
    if (file.size() + record.size > kMostBytes) return;
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(record.begin);
    const Bytes copy(begin, begin + static_cast<std::ptrdiff_t>(record.size));
    file.insert(file.begin() + static_cast<std::ptrdiff_t>(at), copy.begin(), copy.end());
    resize_events(file, static_cast<std::ptrdiff_t>(copy.size()));
  }

  std::mt19937 random_;
};

// The packed files, where there is room for them; else the input as it was.
std::size_t give(const std::vector<Bytes>& files, std::uint8_t* data, std::size_t size, std::size_t max_size) {
  const Bytes input = packed(files);
  if (input.size() > max_size) return size;
  std::ranges::copy(input, data);
  return input.size();
}

}  // namespace
}  // namespace devsan::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace devsan::fuzz;
  std::vector<Bytes> files = unpacked({data, size});
  Mutator(seed).change(files);
  return give(files, data, size, max_size);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* one, std::size_t one_size,
                                                 const std::uint8_t* other, std::size_t other_size, std::uint8_t* out,
                                                 std::size_t max_size, unsigned seed) {
  using namespace devsan::fuzz;
  std::vector<Bytes> files = unpacked({one, one_size});
  Mutator(seed).cross(files, unpacked({other, other_size}));
  return give(files, out, 0, max_size);
}
