// The collectives that the process has entered, in the ring of its trace: who entered one, and what tells that it is
// over. Any thread may call anything here; nothing takes a lock, and a lossy table may forget what it was told.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "hooks/inprocess/events/early_ends.h"
#include "trace/collective_ring.h"
#include "trace/recorder.h"

namespace devsan::hooks {

// From addresses that torch or the device names a collective's end by to the collective. An address is used again once
// its object is gone: who puts it in overrules what was there.
class CollectiveKeys {
 public:
  void put(const void* key, trace::CollectiveRef collective) noexcept;
  trace::CollectiveRef find(const void* key) const noexcept;
  void clear() noexcept;

 private:
  static constexpr std::size_t kSets = 512;
  static constexpr std::size_t kWays = 4;
  struct Slot {
    std::atomic<const void*> key{nullptr};
    std::atomic<std::uint64_t> number{0};
    std::atomic<trace::CollectiveRingPayload*> ring{nullptr};
  };

  static bool is_spent(const Slot& slot) noexcept;

  Slot slots_[kSets][kWays];
};

class CollectiveLog {
 public:
  // A ref that names none where the trace has no room.
  trace::CollectiveRef enter(const trace::CollectiveFacts& facts, std::uint8_t flags) noexcept;

  // `work`: the address of the c10d::Work that the call returned. `event`: one that the device's work ends by.
  void ends_with_work(const void* work, trace::CollectiveRef collective) noexcept { works_.put(work, collective); }
  void ends_with_event(const void* event, trace::CollectiveRef collective) noexcept;

  // Around a call that records events on a device, and for each of these.
  void begins_to_record_events() noexcept { early_ends_.begin(); }
  void event_is_recorded(const void* event) noexcept { early_ends_.forget(event); }
  void has_recorded_events() noexcept { early_ends_.end(); }

  // The clock is read for the first end alone, which counts.
  static void ended(trace::CollectiveRef collective, bool failed) noexcept;

  trace::CollectiveRef of_work(const void* work) const noexcept { return works_.find(work); }
  void work_ended(const void* work, bool failed) noexcept;
  void event_completed(const void* event) noexcept;

  // The number, plus 1, of the oldest collective that was entered before that time, and is not over as far as anybody
  // can tell; 0 where there is none.
  std::uint64_t oldest_open(std::int64_t before_ns) const noexcept;

  // How many were entered.
  std::uint64_t entered() const noexcept;
  // A copy of one, by its number; nothing once the ring has come round.
  std::optional<trace::CollectiveEntry> find(std::uint64_t number) const noexcept;

  // Whether the last one that was entered failed.
  bool last_failed() const noexcept;

  // In a child of a fork, before it records.
  void reset_after_fork() noexcept;

 private:
  trace::CollectiveRingPayload* ring() noexcept;

  std::atomic<trace::CollectiveRingPayload*> ring_{nullptr};
  CollectiveKeys works_;
  CollectiveKeys events_;
  EarlyEnds early_ends_;
};

extern CollectiveLog collective_log;

}  // namespace devsan::hooks
