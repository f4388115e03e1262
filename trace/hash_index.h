// Finds the id of an entry that is already in a table of the trace file. Lock-free and fork-safe: every slot is one
// word, stored after the entry it points to was published, so that a fork at any instant leaves a usable index.
// Lossy: where a neighbourhood is full, an older entry is forgotten and may be stored in the file a second time.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace devsan::trace {

inline std::uint64_t hash_bytes(const void* data, std::size_t size) noexcept {
  const char* at = static_cast<const char*>(data);
  std::uint64_t hash = 0x9E3779B97F4A7C15u ^ size;
  while (size > 0) {
    std::uint64_t word = 0;
    const std::size_t taken = std::min(size, sizeof(word));
    std::memcpy(&word, at, taken);
    at += taken;
    size -= taken;
    // Every bit must reach the low ones, which choose the slot: names that differ in one digit are many.
    hash ^= word;
    hash = (hash ^ hash >> 33) * 0xFF51AFD7ED558CCDu;
    hash = (hash ^ hash >> 33) * 0xC4CEB9FE1A85EC53u;
    hash ^= hash >> 33;
  }
  return hash;
}

class HashIndex {
 public:
  using Slot = std::atomic<std::uint64_t>;  // upper half: bits of the hash; lower half: the id, 0 for an empty slot
  static constexpr std::size_t kProbes = 8;

  // `slots` are zeroed memory that outlives the index; `count` is a power of two, at least kProbes.
  void use(Slot* slots, std::size_t count) noexcept {
    slots_ = slots;
    mask_ = count - 1;
  }

  // 0 when no entry satisfies `equal(id)`.
  template <class Equal>
  std::uint32_t find(std::uint64_t hash, Equal&& equal) const noexcept {
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      const std::uint64_t slot = slots_[(hash + probe) & mask_].load(std::memory_order_acquire);
      if (slot == 0) return 0;
      if (same_tag(slot, hash) && equal(static_cast<std::uint32_t>(slot))) return static_cast<std::uint32_t>(slot);
    }
    return 0;
  }

  // Enters a published entry. Two threads may have stored equal entries: both get the id that came first.
  template <class Equal>
  std::uint32_t insert(std::uint64_t hash, std::uint32_t id, Equal&& equal) noexcept {
    const std::uint64_t mine = (hash & kTagMask) | id;
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      std::uint64_t found = 0;
      Slot& slot = slots_[(hash + probe) & mask_];
      if (slot.compare_exchange_strong(found, mine, std::memory_order_acq_rel, std::memory_order_acquire)) return id;
      if (same_tag(found, hash) && equal(static_cast<std::uint32_t>(found))) return static_cast<std::uint32_t>(found);
    }
    slots_[(hash + (hash >> 61)) & mask_].store(mine, std::memory_order_release);
    return id;
  }

 private:
  static constexpr std::uint64_t kTagMask = 0xFFFFFFFF00000000u;
  static bool same_tag(std::uint64_t slot, std::uint64_t hash) noexcept { return ((slot ^ hash) & kTagMask) == 0; }

  Slot* slots_ = nullptr;
  std::size_t mask_ = 0;
};

}  // namespace devsan::trace
