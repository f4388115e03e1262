// Changes the entries of a ring of collectives in place, where a trace file lies mapped. Every function may be called
// by any number of threads at once, takes no lock and allocates nothing; a null ring is passed over.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "trace/collective_layout.h"
#include "trace/file_access.h"

namespace devsan::trace {

// Names a collective of a ring. Once the ring has come round, nothing is left of it, and a change does nothing.
struct CollectiveRef {
  CollectiveRingPayload* ring = nullptr;
  std::uint64_t number = 0;

  explicit operator bool() const noexcept { return ring != nullptr; }
};

inline CollectiveEntry* entry_of(CollectiveRef collective) noexcept {
  if (collective.ring == nullptr) return nullptr;
  CollectiveEntry& entry = collective.ring->entries[collective.number % kCollectiveEntries];
  const std::uint32_t there = atom(entry.number).load(std::memory_order_acquire);
  return there == static_cast<std::uint32_t>(collective.number) + 1 ? &entry : nullptr;
}

// The entry's number is taken away before the rest changes, and given last. Word by word and each at once: a thread
// that is kCollectiveEntries behind may be at the same entry.
inline CollectiveRef enter_collective(CollectiveRingPayload* ring, const CollectiveFacts& facts,
                                      std::uint8_t flags) noexcept {
  if (ring == nullptr) return {};
  using Words = std::array<std::uint64_t, sizeof(CollectiveFacts) / sizeof(std::uint64_t)>;
  const std::uint64_t number = atom(ring->next).fetch_add(1, std::memory_order_relaxed);
  CollectiveEntry& entry = ring->entries[number % kCollectiveEntries];
  atom(entry.number).exchange(0, std::memory_order_acq_rel);
  const Words words = std::bit_cast<Words>(facts);
  auto* const place = reinterpret_cast<std::uint64_t*>(&entry.facts);
  for (std::size_t i = 0; i < words.size(); ++i) atom(place[i]).store(words[i], std::memory_order_relaxed);
  atom(entry.finished_ns).store(0, std::memory_order_relaxed);
  atom(entry.wait_ns).store(0, std::memory_order_relaxed);
  atom(entry.flags).store(flags, std::memory_order_relaxed);
  atom(entry.state).store(CollectiveState::entered, std::memory_order_relaxed);
  atom(entry.number).store(static_cast<std::uint32_t>(number) + 1, std::memory_order_release);
  return {ring, number};
}

// The call has returned. What has been told meanwhile stays.
inline void issued(CollectiveRef collective, std::uint8_t more_flags) noexcept {
  CollectiveEntry* const entry = entry_of(collective);
  if (entry == nullptr) return;
  if (more_flags != 0) atom(entry->flags).fetch_or(more_flags, std::memory_order_relaxed);
  CollectiveState from = CollectiveState::entered;
  atom(entry->state).compare_exchange_strong(from, CollectiveState::issued, std::memory_order_release);
}

// It has ended, or nothing is left of it.
inline bool is_over(CollectiveRef collective) noexcept {
  CollectiveEntry* const entry = entry_of(collective);
  return entry == nullptr || atom(entry->state).load(std::memory_order_relaxed) >= CollectiveState::finished;
}

// The first end counts.
inline void ended(CollectiveRef collective, CollectiveState how, std::int64_t time_ns) noexcept {
  CollectiveEntry* const entry = entry_of(collective);
  if (entry == nullptr) return;
  CollectiveState from = atom(entry->state).load(std::memory_order_relaxed);
  do {
    if (from == CollectiveState::finished || from == CollectiveState::failed) return;
  } while (!atom(entry->state).compare_exchange_weak(from, how, std::memory_order_release));
  atom(entry->finished_ns).store(time_ns, std::memory_order_release);
}

inline void wait_begins(CollectiveRef collective, std::int64_t time_ns) noexcept {
  CollectiveEntry* const entry = entry_of(collective);
  if (entry == nullptr) return;
  atom(entry->wait_ns).store(time_ns, std::memory_order_relaxed);
  atom(entry->flags).fetch_or(kAwaitedNow, std::memory_order_release);
}

inline void wait_ends(CollectiveRef collective) noexcept {
  CollectiveEntry* const entry = entry_of(collective);
  if (entry == nullptr) return;
  atom(entry->flags).fetch_or(kAwaited, std::memory_order_relaxed);
  atom(entry->flags).fetch_and(static_cast<std::uint8_t>(~kAwaitedNow), std::memory_order_release);
}

}  // namespace devsan::trace
