#include "hooks/inprocess/events/early_ends.h"

#include "hooks/inprocess/common/address_slot.h"

namespace devsan::hooks {

void EarlyEnds::forget(const void* event) noexcept {
  std::atomic<const void*>& place = events_[slot_of_address<kEvents>(event)];
  if (place.load(std::memory_order_relaxed) == event) place.store(nullptr, std::memory_order_relaxed);
}

// In one order with what puts the event in among those that are known: either this is seen there, or that is seen here.
void EarlyEnds::note(const void* event) noexcept {
  if (calls_.load(std::memory_order_relaxed) != 0)
    events_[slot_of_address<kEvents>(event)].store(event, std::memory_order_seq_cst);
}

bool EarlyEnds::has(const void* event) const noexcept {
  return events_[slot_of_address<kEvents>(event)].load(std::memory_order_seq_cst) == event;
}

void EarlyEnds::clear() noexcept {
  calls_.store(0, std::memory_order_relaxed);
  for (std::atomic<const void*>& place : events_) place.store(nullptr, std::memory_order_relaxed);
}

}  // namespace devsan::hooks
