// The meetings that were written already, so that a repeat only counts up.
#pragma once

#include <atomic>
#include <cstdint>

#include "trace/recorder.h"

namespace devsan::hooks {

// What makes two meetings the same one.
struct MeetingKey {
  trace::SiteId site = trace::SiteId::none;
  trace::SiteId forward = trace::SiteId::none;  // of an error in backward: what made the node
  trace::OperatorId op = trace::OperatorId::none;
  std::uint64_t devices = 0;  // of the operands, in order
  std::uint32_t flags = 0;    // MeetingFlags that it was written with
  bool operator==(const MeetingKey&) const = default;
};

class MeetingTable {
 public:
  // The meeting's payload in the file of `epoch`; null where it was not written, or has been forgotten.
  trace::MeetingPayload* find(const MeetingKey& key, std::uint64_t epoch) noexcept;
  void add(const MeetingKey& key, std::uint64_t epoch, trace::MeetingPayload* meeting) noexcept;

 private:
  struct Entry {
    MeetingKey key;
    std::uint64_t epoch = 0;
    trace::MeetingPayload* meeting = nullptr;
  };
  static constexpr std::size_t kEntries = 1024;
  Entry& entry_of(const MeetingKey& key) noexcept;

  Entry entries_[kEntries] = {};
  std::atomic_flag lock_ = ATOMIC_FLAG_INIT;
};

extern MeetingTable meeting_table;

}  // namespace devsan::hooks
