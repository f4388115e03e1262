#include "hooks/inprocess/events/moves.h"

#include <array>
#include <atomic>
#include <cstddef>

#include "hooks/inprocess/common/address_slot.h"
#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/events/pending_copies.h"
#include "hooks/inprocess/events/placements.h"

namespace devsan::hooks {

namespace {

constexpr std::size_t kKept = 1 << 14;
constexpr unsigned kMostWaits = 4096;  // operators that could not look

constinit std::array<std::atomic<const void*>, kKept> kept{};
constinit std::atomic<bool> moved_between_steps{false};
constinit std::atomic<std::uint32_t> looking_thread{0};
constinit std::atomic<trace::SiteId> moving_line{trace::SiteId::none};
constinit std::atomic<unsigned> waits{0};

bool is_kept(const void* storage) noexcept {
  const std::size_t place = slot_of_address<kKept>(storage);
  return kept[place].load(std::memory_order_relaxed) == storage ||
         kept[place ^ 1].load(std::memory_order_relaxed) == storage;
}

void want_look(const ThreadState& state, trace::SiteId line) noexcept {
  if (!look_in_step_is_due()) return;
  looking_thread.store(state.tid, std::memory_order_relaxed);
  moving_line.store(line, std::memory_order_relaxed);
  waits.store(0, std::memory_order_relaxed);
  attention.fetch_or(kLookWanted, std::memory_order_relaxed);
}

}  // namespace

void keep_in_mind(const void* storage) noexcept {
  const std::size_t place = slot_of_address<kKept>(storage);
  const void* there = kept[place].load(std::memory_order_relaxed);
  const bool free = there == nullptr || there == storage;
  kept[free ? place : place ^ 1].store(storage, std::memory_order_relaxed);
}

void note_move(const ThreadState& state, const void* storage) noexcept {
  if (!is_kept(storage)) return;
  if (runtime.last_pass.load(std::memory_order_relaxed) != Pass::forward) {
    moved_between_steps.store(true, std::memory_order_relaxed);
  } else {
    want_look(state, state.outer.site.id);
  }
}

void note_use_begins(const ThreadState& state, bool first) noexcept {
  if (moved_between_steps.exchange(false, std::memory_order_relaxed) || first) want_look(state, trace::SiteId::none);
}

WantedLook wanted_look() noexcept {
  if (waits.fetch_add(1, std::memory_order_relaxed) >= kMostWaits) drop_wanted_look();
  return {looking_thread.load(std::memory_order_relaxed), moving_line.load(std::memory_order_relaxed)};
}

void drop_wanted_look() noexcept {
  attention.fetch_and(~kLookWanted, std::memory_order_relaxed);
}

void put_off_wanted_look() noexcept {
  moved_between_steps.store(true, std::memory_order_relaxed);
  drop_wanted_look();
}

}  // namespace devsan::hooks
