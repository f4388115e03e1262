#include "hooks/live_storages.h"

#include <c10/core/StorageImpl.h>

#include <array>
#include <span>

#include "hooks/origin_table.h"
#include "hooks/own_memory.h"
#include "hooks/runtime.h"

namespace devsan::hooks {

// StorageImpl::size_bytes_ is private, and its accessor asks a storage that must live. An explicit instantiation may
// name private members.
c10::SymInt c10::StorageImpl::*size_member() noexcept;
template <c10::SymInt c10::StorageImpl::*Member>
struct SizeMember {
  friend c10::SymInt c10::StorageImpl::*size_member() noexcept { return Member; }
};
template struct SizeMember<&c10::StorageImpl::size_bytes_>;

namespace {

static_assert(sizeof(c10::SymInt) == sizeof(std::uint64_t), "a size that is known is one word");

constexpr std::size_t kAtOnce = 256;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 47;  // a size beyond is symbolic, or no size at all

// Where a storage keeps its size; -1 where that cannot be told, or read.
std::ptrdiff_t find_size_offset() noexcept {
  try {
    constexpr std::size_t kSize = 4711;
    const auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), kSize,
                                                               c10::DataPtr(), nullptr, false);
    const char* begin = reinterpret_cast<const char*>(storage.get());
    const char* at = reinterpret_cast<const char*>(&(storage.get()->*size_member()));
    std::uint64_t read = 0;
    if (!read_own_words({&at, 1}, {&read, 1}) || read != kSize) return -1;
    return at - begin;
  } catch (...) {
    return -1;
  }
}

class Batch {
 public:
  Batch(LiveStorageVisitor& visitor, std::ptrdiff_t offset) noexcept : visitor_(visitor), offset_(offset) {}

  void add(std::size_t place, std::uint64_t entry) noexcept {
    places_[count_] = place;
    entries_[count_] = entry;
    addresses_[count_] = OriginTable::storage_of(entry) + offset_;
    if (++count_ == kAtOnce) flush();
  }

  // What was read is a storage's size if the storage lived on: its tag dies before it does.
  void flush() noexcept {
    read_own_words({addresses_.data(), count_}, {sizes_.data(), count_});
    for (std::size_t k = 0; k < count_; ++k) {
      if (origin_table.entry_at(places_[k]) != entries_[k] || sizes_[k] > kMostBytes) continue;
      visitor_.storage(OriginTable::storage_of(entries_[k]), OriginTable::node_of(entries_[k]), sizes_[k]);
    }
    count_ = 0;
  }

 private:
  LiveStorageVisitor& visitor_;
  const std::ptrdiff_t offset_;
  std::size_t count_ = 0;
  std::array<std::size_t, kAtOnce> places_;
  std::array<std::uint64_t, kAtOnce> entries_;
  std::array<const char*, kAtOnce> addresses_;
  std::array<std::uint64_t, kAtOnce> sizes_;
};

}  // namespace

bool visit_live_storages(LiveStorageVisitor& visitor) noexcept {
  static const std::ptrdiff_t offset = find_size_offset();
  if (offset < 0 || !runtime.has_origins) return false;
  Batch batch(visitor, offset);
  for (std::size_t place = 0; place < OriginTable::kPlaces; ++place) {
    const std::uint64_t entry = origin_table.entry_at(place);
    // A tag of no node is that of a storage that was copied, and that no operator has made.
    if (OriginTable::node_of(entry) != trace::LineageId::none) batch.add(place, entry);
  }
  batch.flush();
  return true;
}

}  // namespace devsan::hooks
