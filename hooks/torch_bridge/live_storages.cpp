#include "hooks/inprocess/bridge/live_storages.h"

#include <c10/core/StorageImpl.h>

#include <array>
#include <span>

#include "hooks/inprocess/bridge/tensor_facts.h"
#include "hooks/inprocess/common/own_memory.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/provenance/large_page.h"

namespace devsan::hooks {

// What StorageImpl keeps is private, and its accessors ask a storage that must live. An explicit instantiation may name
// private members.
c10::SymInt c10::StorageImpl::*size_member() noexcept;
template <c10::SymInt c10::StorageImpl::*Member>
struct SizeMember {
  friend c10::SymInt c10::StorageImpl::*size_member() noexcept { return Member; }
};
template struct SizeMember<&c10::StorageImpl::size_bytes_>;

c10::DataPtr c10::StorageImpl::*data_member() noexcept;
template <c10::DataPtr c10::StorageImpl::*Member>
struct DataMember {
  friend c10::DataPtr c10::StorageImpl::*data_member() noexcept { return Member; }
};
template struct DataMember<&c10::StorageImpl::data_ptr_>;

namespace {

static_assert(sizeof(c10::SymInt) == sizeof(std::uint64_t), "a size that is known is one word");

constexpr std::size_t kAtOnce = 256;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 47;  // a size beyond is symbolic, or no size at all

struct Offsets {
  std::ptrdiff_t size = -1;
  std::ptrdiff_t data = -1;
};

// Where `member` is in a storage, if what is read there is `expected`; -1 where not, or where nothing can be read.
template <class Member>
std::ptrdiff_t checked_offset(const c10::StorageImpl* storage, const Member& member, std::uint64_t expected) noexcept {
  const char* at = reinterpret_cast<const char*>(&member);
  std::uint64_t read = 0;
  if (!read_own_words({&at, 1}, {&read, 1}) || read != expected) return -1;
  return at - reinterpret_cast<const char*>(storage);
}

Offsets find_offsets() noexcept {
  try {
    constexpr std::size_t kSize = 4711;
    static char memory = 0;
    const auto storage = c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), kSize, c10::DataPtr(&memory, c10::DeviceType::CPU), nullptr, false);
    return {checked_offset(storage.get(), storage.get()->*size_member(), kSize),
            checked_offset(storage.get(), storage.get()->*data_member(), reinterpret_cast<std::uintptr_t>(&memory))};
  } catch (...) {
    return {};
  }
}

const Offsets& offsets() noexcept {
  static const Offsets found = find_offsets();
  return found;
}

// Reads one word of each storage that has a tag with a node, and gives it to `take(storage, node, word)`.
template <class Take>
class Batch {
 public:
  Batch(Take& take, std::ptrdiff_t offset) noexcept : take_(take), offset_(offset) {}

  void add(std::size_t place, std::uint64_t entry) noexcept {
    places_[count_] = place;
    entries_[count_] = entry;
    addresses_[count_] = OriginTable::storage_of(entry) + offset_;
    if (++count_ == kAtOnce) flush();
  }

  // What was read is a storage's if the storage lived on: its tag dies before it does.
  void flush() noexcept {
    read_own_words({addresses_.data(), count_}, {words_.data(), count_});
    for (std::size_t k = 0; k < count_; ++k) {
      if (origin_table().entry_at(places_[k]) != entries_[k]) continue;
      take_(OriginTable::storage_of(entries_[k]), OriginTable::node_of(entries_[k]), words_[k]);
    }
    count_ = 0;
  }

 private:
  Take& take_;
  const std::ptrdiff_t offset_;
  std::size_t count_ = 0;
  std::array<std::size_t, kAtOnce> places_;
  std::array<std::uint64_t, kAtOnce> entries_;
  std::array<const char*, kAtOnce> addresses_;
  std::array<std::uint64_t, kAtOnce> words_;
};

constexpr std::size_t kLine = 8;  // places in a cache line
static_assert(OriginTable::kPlaces % kLine == 0);

// Most places are, in nearly every program.
bool are_free(const OriginTable& table, std::size_t first) noexcept {
  std::uint64_t any = 0;
#pragma GCC unroll 8
  for (std::size_t k = 0; k < kLine; ++k) any |= table.entry_at(first + k);
  return any == 0;
}

template <class Take>
void for_each_tagged(std::ptrdiff_t offset, Take take) noexcept {
  const OriginTable& table = origin_table();
  Batch<Take> batch(take, offset);
  for (std::size_t line = 0; line < OriginTable::kPlaces; line += kLine) {
    if (are_free(table, line)) [[likely]]
      continue;
    for (std::size_t place = line; place < line + kLine; ++place) {
      const std::uint64_t entry = table.entry_at(place);
      // A tag of no node is that of a storage that was copied, and that no operator has made.
      if (OriginTable::node_of(entry) != trace::LineageId::none) batch.add(place, entry);
    }
  }
  batch.flush();
}

}  // namespace

bool visit_live_storages(LiveStorageVisitor& visitor) noexcept {
  if (offsets().size < 0 || !runtime.has_origins) return false;
  for_each_tagged(offsets().size, [&](const void* storage, trace::LineageId node, std::uint64_t bytes) {
    if (bytes <= kMostBytes) visitor.storage(storage, node, bytes);
  });
  return true;
}

void prepare_to_find_storages() noexcept {
  offsets();
}

trace::LineageId origin_of_memory(const void* begin, std::uint64_t bytes, trace::DeviceSlot device) noexcept {
  trace::LineageId origin = trace::LineageId::none;
  if (offsets().data < 0 || !runtime.has_origins) return origin;
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  for_each_tagged(offsets().data, [&](const void*, trace::LineageId node, std::uint64_t data) {
    if (data - first < bytes && runtime.recorder->lineage(node).device == device) origin = node;
  });
  return origin;
}

}  // namespace devsan::hooks
