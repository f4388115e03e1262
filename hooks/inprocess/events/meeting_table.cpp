#include "hooks/inprocess/events/meeting_table.h"

#include "hooks/inprocess/common/spin_guard.h"

namespace devsan::hooks {

constinit MeetingTable meeting_table{};

MeetingTable::Entry& MeetingTable::entry_of(const MeetingKey& key) noexcept {
  std::uint64_t hash = std::uint64_t(key.site) << 32 ^ std::uint64_t(key.op) << 8 ^ key.flags;
  hash = (hash ^ std::uint64_t(key.forward) << 16 ^ key.devices * 31) * 0x9E3779B97F4A7C15u;
  return entries_[hash >> 54];
}

trace::MeetingPayload* MeetingTable::find(const MeetingKey& key, std::uint64_t epoch) noexcept {
  const SpinGuard guard(lock_);
  const Entry& entry = entry_of(key);
  return guard.held() && entry.epoch == epoch && entry.key == key ? entry.meeting : nullptr;
}

void MeetingTable::add(const MeetingKey& key, std::uint64_t epoch, trace::MeetingPayload* meeting) noexcept {
  const SpinGuard guard(lock_);
  if (guard.held()) entry_of(key) = {key, epoch, meeting};
}

}  // namespace devsan::hooks
