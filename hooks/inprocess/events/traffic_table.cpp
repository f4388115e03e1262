#include "hooks/inprocess/events/traffic_table.h"

#include "hooks/inprocess/common/spin_guard.h"

namespace devsan::hooks {

constinit TrafficTable traffic_table{};

TrafficTable::Entry* TrafficTable::find_or_claim(const TrafficKey& key, std::uint64_t epoch, bool* is_new) noexcept {
  std::uint64_t hash = std::uint64_t(key.site) << 32 ^ std::uint64_t(key.cause) << 12 ^ std::uint64_t(key.op) << 6;
  hash = (hash ^ std::uint64_t(key.kind) << 3 ^ std::uint64_t(key.race)) * 0x9E3779B97F4A7C15u;
  const SpinGuard guard(lock_);
  if (!guard.held()) return nullptr;
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    Entry& entry = entries_[((hash >> 54) + probe) % kEntries];
    if (entry.epoch == epoch && entry.key == key) return &entry;
    if (entry.epoch == epoch) continue;
    // Free, or of the file that the parent of this process writes.
    entry.key = key;
    entry.epoch = epoch;
    entry.payload.store(nullptr, std::memory_order_relaxed);
    *is_new = true;
    return &entry;
  }
  return nullptr;
}

}  // namespace devsan::hooks
