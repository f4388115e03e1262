// The traffic that was written already, so that a repeat only counts up. Traffic is as frequent as the program makes
// it, so the table is what bounds the trace: what finds no place in it is not recorded.
#pragma once

#include <atomic>
#include <cstdint>

#include "trace/recorder.h"

namespace devsan::hooks {

// What makes two the same.
struct TrafficKey {
  trace::SiteId site = trace::SiteId::none;
  trace::SiteId cause = trace::SiteId::none;
  trace::OperatorId op = trace::OperatorId::none;
  trace::TrafficKind kind = trace::TrafficKind::none;
  trace::RaceKind race = trace::RaceKind::none;
  std::uint8_t flags = 0;
  bool operator==(const TrafficKey&) const = default;
};

class TrafficTable {
 public:
  struct Entry {
    TrafficKey key;
    std::uint64_t epoch = 0;  // of the file that the payload is in; 0 while the entry is free
    std::atomic<trace::TrafficPayload*> payload{nullptr};  // null until it is written, and when the trace was full
  };

  // The entry with this key, of the file of `epoch`. `is_new`: the caller is the one to write it. Null without room.
  Entry* find_or_claim(const TrafficKey& key, std::uint64_t epoch, bool* is_new) noexcept;

 private:
  static constexpr std::size_t kEntries = 1024;
  static constexpr std::size_t kProbes = 32;
  Entry entries_[kEntries] = {};
  std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
};

extern TrafficTable traffic_table;

}  // namespace devsan::hooks
