#include "hooks/inprocess/events/collective_log.h"

#include <array>
#include <bit>

#include "hooks/inprocess/common/address_slot.h"
#include "hooks/inprocess/common/runtime.h"
#include "trace/clock.h"

namespace devsan::hooks {

constinit CollectiveLog collective_log{};

// The collective is over, or its entry has been overwritten: its key is free.
bool CollectiveKeys::is_spent(const Slot& slot) noexcept {
  const trace::CollectiveRef collective{slot.ring.load(std::memory_order_relaxed),
                                        slot.number.load(std::memory_order_relaxed)};
  return trace::is_over(collective);
}

void CollectiveKeys::put(const void* key, trace::CollectiveRef collective) noexcept {
  Slot* const set = slots_[slot_of_address<kSets>(key)];
  Slot* place = nullptr;
  for (std::size_t way = 0; way < kWays && (place == nullptr || place->key.load(std::memory_order_relaxed) != key);
       ++way) {
    Slot& slot = set[way];
    const void* const there = slot.key.load(std::memory_order_relaxed);
    if (there == key) {
      place = &slot;
    } else if (place == nullptr && (there == nullptr || is_spent(slot))) {
      place = &slot;
    }
  }
  if (place == nullptr) place = &set[collective.number % kWays];
  // Whoever asks meanwhile finds nothing there.
  place->key.store(nullptr, std::memory_order_release);
  place->ring.store(collective.ring, std::memory_order_release);
  place->number.store(collective.number, std::memory_order_release);
  place->key.store(key, std::memory_order_release);
}

trace::CollectiveRef CollectiveKeys::find(const void* key) const noexcept {
  const Slot* const set = slots_[slot_of_address<kSets>(key)];
  for (std::size_t way = 0; way < kWays; ++way) {
    const Slot& slot = set[way];
    if (slot.key.load(std::memory_order_acquire) != key) continue;
    const trace::CollectiveRef found{slot.ring.load(std::memory_order_acquire),
                                     slot.number.load(std::memory_order_acquire)};
    if (slot.key.load(std::memory_order_acquire) == key) return found;
  }
  return {};
}

void CollectiveKeys::clear() noexcept {
  for (Slot(&set)[kWays] : slots_) {
    for (Slot& slot : set) {
      if (slot.key.load(std::memory_order_relaxed) != nullptr) slot.key.store(nullptr, std::memory_order_relaxed);
    }
  }
}

// Of threads that enter the first one at once, those that are late have made a ring that stays empty.
trace::CollectiveRingPayload* CollectiveLog::ring() noexcept {
  trace::CollectiveRingPayload* there = ring_.load(std::memory_order_acquire);
  if (there != nullptr) return there;
  trace::CollectiveRingPayload* const made = runtime.recorder->add_collective_ring();
  if (made == nullptr || ring_.compare_exchange_strong(there, made, std::memory_order_acq_rel)) return made;
  return there;
}

trace::CollectiveRef CollectiveLog::enter(const trace::CollectiveFacts& facts, std::uint8_t flags) noexcept {
  return trace::enter_collective(ring(), facts, flags);
}

void CollectiveLog::ended(trace::CollectiveRef collective, bool failed) noexcept {
  if (trace::is_over(collective)) return;
  trace::ended(collective, failed ? trace::CollectiveState::failed : trace::CollectiveState::finished,
               trace::wall_clock_ns());
}

void CollectiveLog::work_ended(const void* work, bool failed) noexcept {
  ended(works_.find(work), failed);
}

void CollectiveLog::ends_with_event(const void* event, trace::CollectiveRef collective) noexcept {
  events_.put(event, collective);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (early_ends_.has(event)) ended(collective, false);
}

void CollectiveLog::event_completed(const void* event) noexcept {
  early_ends_.note(event);
  ended(events_.find(event), false);
}

std::uint64_t CollectiveLog::oldest_open(std::int64_t before_ns) const noexcept {
  trace::CollectiveRingPayload* const ring = ring_.load(std::memory_order_acquire);
  if (ring == nullptr) return 0;
  const std::uint64_t next = trace::atom(ring->next).load(std::memory_order_acquire);
  std::uint64_t number = next > trace::kCollectiveEntries ? next - trace::kCollectiveEntries : 0;
  for (; number < next; ++number) {
    trace::CollectiveEntry* const entry = trace::entry_of({ring, number});
    if (entry == nullptr) continue;
    if (trace::atom(entry->state).load(std::memory_order_acquire) >= trace::CollectiveState::finished) continue;
    if (trace::ends_unseen(trace::atom(entry->flags).load(std::memory_order_relaxed))) continue;
    if (trace::atom(entry->facts.entered_ns).load(std::memory_order_relaxed) < before_ns) return number + 1;
  }
  return 0;
}

std::uint64_t CollectiveLog::entered() const noexcept {
  trace::CollectiveRingPayload* const ring = ring_.load(std::memory_order_acquire);
  return ring != nullptr ? trace::atom(ring->next).load(std::memory_order_acquire) : 0;
}

std::optional<trace::CollectiveEntry> CollectiveLog::find(std::uint64_t number) const noexcept {
  const trace::CollectiveRef collective{ring_.load(std::memory_order_acquire), number};
  trace::CollectiveEntry* const there = trace::entry_of(collective);
  if (there == nullptr) return std::nullopt;
  using Words = std::array<std::uint64_t, sizeof(trace::CollectiveEntry) / sizeof(std::uint64_t)>;
  static_assert(sizeof(Words) == sizeof(trace::CollectiveEntry));
  Words words;
  auto* const place = reinterpret_cast<std::uint64_t*>(there);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = trace::atom(place[i]).load(std::memory_order_acquire);
  // It may have been overwritten meanwhile.
  if (trace::entry_of(collective) == nullptr) return std::nullopt;
  return std::bit_cast<trace::CollectiveEntry>(words);
}

bool CollectiveLog::last_failed() const noexcept {
  const std::uint64_t next = entered();
  trace::CollectiveEntry* const entry =
      next != 0 ? trace::entry_of({ring_.load(std::memory_order_acquire), next - 1}) : nullptr;
  return entry != nullptr &&
         trace::atom(entry->state).load(std::memory_order_acquire) == trace::CollectiveState::failed;
}

void CollectiveLog::reset_after_fork() noexcept {
  if (ring_.exchange(nullptr, std::memory_order_acq_rel) == nullptr) return;
  works_.clear();
  events_.clear();
  early_ends_.clear();
}

}  // namespace devsan::hooks
