// The bytes of those records of a trace file that are about collectives and about what ended the program: part of the
// contract that trace/file_layout.h begins, with the same rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "trace/file_layout.h"

namespace devsan::trace {

// How far a collective has come in this process.
enum class CollectiveState : std::uint8_t {
  none = 0,
  entered = 1,   // the call that starts it has not returned
  issued = 2,    // it has; the work goes on
  finished = 3,  // torch or the device said so
  failed = 4,    // it raised, or torch ended it with an error
};

enum CollectiveFlags : std::uint8_t {
  kPointToPoint = 1,  // a send or a receive: it has no number in its group
  kAwaitedNow = 2,    // a thread waits for it now
  kAwaited = 4,       // a thread has waited for it
  kEndNotTold = 8,    // the backend tells nobody when it is finished
  kCaptured = 16,     // it became a part of a graph that was being captured
};

// Whether nobody will tell when it is finished: not the backend, and no thread that waits for it.
constexpr bool ends_unseen(std::uint8_t flags) noexcept {
  return (flags & (kEndNotTold | kCaptured)) != 0 && (flags & kAwaitedNow) == 0;
}

// What of a collective stays as it is once the entry has its number.
struct CollectiveFacts {
  std::int64_t entered_ns;    // CLOCK_REALTIME
  std::uint64_t sequence;     // its number in the group, from 1; 0 for what is point-to-point
  std::uint64_t bytes;        // of the tensors in the first argument that has any
  std::uint64_t other_bytes;  // of those in the second one; 0 without one
  std::uint32_t group;        // CollectiveGroupPayload::index
  std::uint32_t step;
  std::uint32_t tid;
  SiteId site;  // that it was entered from
  StringId dtype;
  std::int32_t peer;  // rank in the group that a send goes to, or a receive comes from; -1
  OperatorId op;      // "c10d::allreduce_"
  DeviceSlot device;  // of the tensors
  Phase phase;
  std::uint32_t reserved;
};
static_assert(sizeof(CollectiveFacts) == 64);

struct CollectiveEntry {
  CollectiveFacts facts;
  std::int64_t finished_ns;  // CLOCK_REALTIME; of a failure, too; 0: not yet
  std::int64_t wait_ns;      // when a thread last began to wait for it; 0: none has
  CollectiveState state;
  std::uint8_t flags;  // CollectiveFlags
  std::uint16_t reserved;
  std::uint32_t number;  // low half of its number plus 1, stored when the rest is complete
};
static_assert(sizeof(CollectiveEntry) == 88);

inline constexpr std::size_t kCollectiveEntries = 1024;

// Collective number n of the process is at index n % kCollectiveEntries. All of it changes in place but `entry_count`.
struct CollectiveRingPayload {
  std::uint64_t next;  // collectives so far
  std::array<CollectiveEntry, kCollectiveEntries> entries;
  std::uint64_t entry_count;  // kCollectiveEntries
};
inline constexpr std::size_t kCollectiveRingMutableBytes = offsetof(CollectiveRingPayload, entry_count);
static_assert(sizeof(CollectiveRingPayload) == sizeof(CollectiveEntry) * kCollectiveEntries + 16);

// A process group that a collective was entered in. Followed by std::int32_t[ranks], the members' ranks in the whole
// run, padded to a multiple of 8; none where torch did not say.
struct CollectiveGroupPayload {
  std::uint32_t index;  // from 1, in this process
  std::int32_t rank;    // of this process in the group
  std::int32_t size;
  std::uint32_t again;  // how many groups of this name the process has had before
  StringId name;
  StringId description;
  StringId backend;
  std::uint32_t ranks;
};
static_assert(sizeof(CollectiveGroupPayload) == 32);

// An exception that nothing caught ended the program. Followed by FrameRecord[frames], innermost first.
struct FailurePayload {
  std::int64_t time_ns;  // CLOCK_REALTIME, when the interpreter was about to end
  StringId type;         // "ValueError"
  StringId message;
  std::uint32_t step;
  std::uint32_t tid;
  std::uint16_t frames;
  std::uint16_t flags;  // kMessageIsArguments
  std::uint32_t reserved_more;
};
static_assert(sizeof(FailurePayload) == 32);

// The class says its message in a way of its own, which was not asked: the message is "('lr', 3)", what it was made of.
inline constexpr std::uint16_t kMessageIsArguments = 1;

// Of one thread, when a collective was not over after the time that the option `hang_after` gives it. Those of one
// moment have one time. Followed by FrameRecord[frames], innermost first.
struct WaitingStackPayload {
  std::int64_t time_ns;      // CLOCK_REALTIME
  std::uint64_t collective;  // its number in the process plus 1, as in the ring
  std::uint32_t tid;
  StringId thread_name;
  std::uint32_t step;
  std::uint16_t frames;
  std::uint16_t reserved;
};
static_assert(sizeof(WaitingStackPayload) == 32);

// A LongWait is a CollectiveEntry: as it was when it was over, since the ring may have come round long before the
// process ends. Of the collective that took longer than `hang_after`, or of the next one that a process entered which
// another waited for.

}  // namespace devsan::trace
