// The facts of meetings, and the text of files.
#include "trace/hash_index.h"
#include "trace/record_writing.h"
#include "trace/recorder.h"
#include "trace/source_hash.h"

namespace devsan::trace {
namespace {

// Early findings stay, and later ones have to fit: facts take up to three quarters of the event section, texts up to a
// half of it, so that a file that is full of facts still has room for thousands of findings.
constexpr std::uint64_t kQuarters = 4;
constexpr std::uint64_t kFactsShare = 3;
constexpr std::uint64_t kTextsShare = 2;

// A file of a hand-written program is some ten to a hundred KiB; what is longer is mostly generated. All together the
// texts stay below what half of the event section of a file of default size holds.
constexpr std::size_t kMaxFileText = std::size_t{256} << 10;
constexpr std::uint64_t kMaxTexts = std::uint64_t{4} << 20;

}  // namespace

// Null, and counted, where the record would reach into what is left to others.
std::byte* Recorder::begin_fact(std::byte* base, std::size_t payload_size, std::uint64_t share) noexcept {
  FileHeader& head = header_of(base);
  const std::uint64_t limit = layout_[SectionKind::events].size / kQuarters * share;
  const std::uint64_t used = atom(head.events_used).load(std::memory_order_relaxed);
  if (used + sizeof(RecordHeader) + payload_size > limit) {
    count_one(head.facts_lost);
    return nullptr;
  }
  return begin_record(base, payload_size);
}

void Recorder::add_facts(const MeetingPayload* meeting, const FactsPayload& fixed, std::span<const ObjectFact> objects,
                         std::span<const LinkFact> links, std::span<const VariableFact> variables,
                         std::span<const CopyFact> copies) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr || meeting == nullptr) return;
  objects = at_most(objects);
  links = at_most(links);
  variables = at_most(variables);
  copies = at_most(copies);
  const std::size_t size = whole_words(sizeof(FactsPayload) + objects.size_bytes() + links.size_bytes() +
                                       variables.size_bytes() + copies.size_bytes());
  std::byte* const place = begin_fact(base, size, kFactsShare);
  if (place == nullptr) return;
  FactsPayload head = fixed;
  const auto* const at = reinterpret_cast<const std::byte*>(meeting) - sizeof(RecordHeader);
  head.meeting = static_cast<std::uint64_t>(at - section(base, SectionKind::events));
  head.objects = static_cast<std::uint32_t>(objects.size());
  head.links = static_cast<std::uint32_t>(links.size());
  head.variables = static_cast<std::uint32_t>(variables.size());
  head.copies = static_cast<std::uint32_t>(copies.size());
  std::memcpy(place, &head, sizeof(head));
  append(append(append(append(place + sizeof(head), objects), links), variables), copies);
  publish(place, RecordKind::Facts, {place, size});
}

void Recorder::add_placements(const PlacementsPayload& fixed, std::span<const PlacementRecord> records) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr) return;
  records = at_most(records);
  const std::size_t size = sizeof(PlacementsPayload) + records.size_bytes();
  std::byte* const place = begin_fact(base, size, kTextsShare);
  if (place == nullptr) return;
  PlacementsPayload head = fixed;
  head.count = static_cast<std::uint16_t>(records.size());
  publish_whole(place, RecordKind::Placements, head, records, size);
}

bool Recorder::wants_source_file(StringId file) noexcept {
  if (file == StringId::none || writable_by_owner() == nullptr) return false;
  const auto key = static_cast<std::uint64_t>(file);
  const std::uint64_t first = hash_bytes(&key, sizeof(key));
  for (std::uint64_t probe = 0; probe < kSeenSourceFiles; ++probe) {
    std::uint64_t seen = 0;
    std::atomic<std::uint64_t>& slot = seen_source_files_[(first + probe) % kSeenSourceFiles];
    if (slot.compare_exchange_strong(seen, key, std::memory_order_relaxed)) return true;
    if (seen == key) return false;
  }
  return false;
}

void Recorder::add_source_file(StringId file, std::string_view text, bool with_text) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr || file == StringId::none) return;
  if (text.size() > kMaxFileText || source_bytes_.load(std::memory_order_relaxed) + text.size() > kMaxTexts) {
    with_text = false;
  }
  const std::size_t kept = with_text ? text.size() : 0;
  std::byte* const place = begin_fact(base, whole_words(sizeof(SourceFilePayload) + kept), kTextsShare);
  if (place == nullptr) return;
  const SourceFilePayload head{file, static_cast<std::uint32_t>(kept), text.size(), source_hash(text)};
  std::memcpy(place, &head, sizeof(head));
  std::memcpy(place + sizeof(head), text.data(), kept);
  source_bytes_.fetch_add(kept, std::memory_order_relaxed);
  publish(place, RecordKind::SourceFile, {place, whole_words(sizeof(head) + kept)});
}

}  // namespace devsan::trace
