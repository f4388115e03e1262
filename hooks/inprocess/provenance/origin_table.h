// The origin of every tensor's value: which lineage node its storage was tagged with. Keyed by the storage's address,
// fixed in size, lossy when full, and never stale: a storage that dies takes its tag along (storage_release.h), before
// its address can be used again.
//
// Address and node share one word, so that a reader sees both or neither. Plain loads and stores only: two threads that
// race for one slot lose a tag, never mix two up.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "trace/file_layout.h"

namespace devsan::hooks {

// The four ways of a bucket are looked at for nearly every operator and every storage that dies.
#define DEVSAN_UNROLLED _Pragma("GCC unroll 4")

class OriginTable {
 public:
  // The tag of a storage; `none` where it has none, or lost it.
  trace::LineageId find(const void* storage) const noexcept {
    const auto* slots = buckets_[bucket_of(storage)].slots;
    const std::uint64_t key = key_of(storage);
    DEVSAN_UNROLLED for (std::size_t way = 0; way < kWays; ++way) {
      const std::uint64_t rest = slots[way].load(std::memory_order_relaxed) ^ key;  // where the addresses are the same
      if (rest <= kRestMask) return trace::LineageId(rest & kNodeMask);
    }
    return trace::LineageId::none;
  }

  // Says of a storage that it was copied to another device; a tag of no node where it has none. The caller holds a
  // reference to the storage.
  void mark_copied(const void* storage) noexcept {
    const std::uint64_t key = key_of(storage);
    for (auto& slot : buckets_[bucket_of(storage)].slots) {
      std::uint64_t entry = slot.load(std::memory_order_relaxed);
      if ((entry ^ key) > kRestMask) continue;
      slot.compare_exchange_strong(entry, entry | kCopied, std::memory_order_relaxed);
      return;
    }
    vacancy(storage)->store(key | kCopied, std::memory_order_relaxed);
  }
  bool copied(const void* storage) const noexcept {
    const std::uint64_t key = key_of(storage);
    for (const auto& slot : buckets_[bucket_of(storage)].slots) {
      const std::uint64_t entry = slot.load(std::memory_order_relaxed);
      if ((entry ^ key) <= kRestMask) return (entry & kCopied) != 0;
    }
    return false;
  }

  // The place for a storage's tag: where it can be stored, or null when the storage has one. The caller holds a
  // reference to the storage.
  std::atomic<std::uint64_t>* vacancy(const void* storage) noexcept {
    const std::uint64_t key = key_of(storage);
    auto* slots = buckets_[bucket_of(storage)].slots;
    auto* found = &slots[(key >> kKeyShift) % kWays];
    DEVSAN_UNROLLED for (std::size_t way = kWays; way-- != 0;) {
      const std::uint64_t entry = slots[way].load(std::memory_order_relaxed);
      if ((entry ^ key) <= kRestMask) return nullptr;
      if (entry == 0) found = &slots[way];
    }
    return found;
  }
  static void fill(std::atomic<std::uint64_t>* vacancy, const void* storage, trace::LineageId node) noexcept {
    vacancy->store(key_of(storage) | static_cast<std::uint64_t>(node), std::memory_order_relaxed);
  }

  void erase(const void* storage) noexcept {
    auto* slots = buckets_[bucket_of(storage)].slots;
    const std::uint64_t key = key_of(storage);
    DEVSAN_UNROLLED for (std::size_t way = 0; way < kWays; ++way) {
      if ((slots[way].load(std::memory_order_relaxed) ^ key) <= kRestMask) [[unlikely]]
        slots[way].store(0, std::memory_order_relaxed);
    }
  }

  // All tags one by one, for who looks at them as a whole: what is at a place may change at any time.
  static constexpr std::size_t kPlaces = std::size_t{4} << 15;
  std::uint64_t entry_at(std::size_t place) const noexcept {
    return buckets_[place / kWays].slots[place % kWays].load(std::memory_order_acquire);
  }
  static const char* storage_of(std::uint64_t entry) noexcept {
    return reinterpret_cast<const char*>(static_cast<std::uintptr_t>(entry >> kKeyShift << 4));
  }
  static trace::LineageId node_of(std::uint64_t entry) noexcept { return trace::LineageId(entry & kNodeMask); }

 private:
  // 47 bits of address, of which the allocator leaves the low 4 zero, a bit, and 20 bits of node:
  //   63                       21 20       19              0
  //   [ address >> 4           ] [ copied ] [ lineage node ]
  static constexpr unsigned kKeyShift = 21;
  static constexpr std::uint64_t kCopied = std::uint64_t{1} << (kKeyShift - 1);
  static constexpr std::uint64_t kNodeMask = kCopied - 1;
  static constexpr std::uint64_t kRestMask = kNodeMask | kCopied;
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kBuckets = 1 << 15;

  static std::uint64_t key_of(const void* storage) noexcept {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(storage)) >> 4 << kKeyShift;
  }
  // Storages that lie near each other have their buckets near each other: a step makes and frees its tensors at the
  // same few pages of the heap, and their tags stay within as few pages of the table. Within its part of the table a
  // page's order is turned by its hash, so that storages at one offset of many pages do not meet.
  static std::size_t bucket_of(const void* storage) noexcept {
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(storage);
    const std::uint64_t page = (address >> 12) * 0x9E3779B97F4A7C15u;
    return (page >> 55 << kPartBits) | ((address >> 6 ^ page >> 40) & ((1 << kPartBits) - 1));
  }
  static constexpr unsigned kPartBits = 6;  // 64 bytes to a bucket
  static_assert(kBuckets == 1 << (9 + kPartBits), "bucket_of yields 15 bits");
  static_assert(kPlaces == kBuckets * kWays);

  struct alignas(32) Bucket {
    std::atomic<std::uint64_t> slots[kWays];
  };
  Bucket buckets_[kBuckets];
};

#undef DEVSAN_UNROLLED

}  // namespace devsan::hooks
