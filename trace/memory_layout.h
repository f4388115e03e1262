// The bytes of those records of a trace file that are about memory and about calls of a device's driver: the rest of
// the contract that trace/file_layout.h begins, with the same rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "trace/file_layout.h"

namespace devsan::trace {

// ---- calls of a device's driver and runtime (CUDA's)

enum class DeviceCallKind : std::uint8_t {
  none = 0,
#define DEVSAN_DEVICE_CALL(enumerator, number, name, text) enumerator = number,
#include "trace/device_call_kinds.def"
#undef DEVSAN_DEVICE_CALL
};

enum class MemorySpace : std::uint8_t {
  none = 0,
#define DEVSAN_MEMORY_SPACE(enumerator, number, name, text) enumerator = number,
#include "trace/memory_spaces.def"
#undef DEVSAN_MEMORY_SPACE
};

// Of a copy. Memory that both sides can use counts as the device's.
enum class CopyDirection : std::uint8_t {
  none = 0,
  host_to_device = 1,
  device_to_host = 2,
  device_to_device = 3,
  host_to_host = 4,
};

enum DeviceCallFlags : std::uint8_t {
  kAsyncCall = 1,     // it was asked to be asynchronous
  kCapturedCall = 2,  // it became a node of a graph that is being captured, and was not carried out
  kPageableCall = 4,  // a copy from or to host memory that is not pinned
  kHostWaited = 8,    // when it came back, the work before it was done: a wait, a query that said so, a blocking copy
};

// One counter for each call, device, and what else tells its uses apart. The fields before `call` change in place, and
// the checksum starts behind them. An attempt that failed, or that was captured, is not among `calls`.
struct DeviceCallPayload {
  std::uint64_t calls;
  std::uint64_t failed;
  std::uint64_t captured;
  std::uint64_t waits;    // of `calls`: after how many the host knew that the work before was done
  std::uint64_t bytes;    // of `calls`
  std::uint64_t wait_ns;  // that the host spent in those that wait
  StringId call;          // "cudaMemcpyAsync"
  DeviceCallKind kind;
  DeviceSlot device;  // none where it is not known
  MemorySpace space;
  CopyDirection direction;
  std::uint8_t flags;  // kAsyncCall, kPageableCall
  std::uint8_t reserved[7];
};
static_assert(sizeof(DeviceCallPayload) == 64);
inline constexpr std::size_t kDeviceCallMutableBytes = offsetof(DeviceCallPayload, call);

// One for each device and space. The fields before `device` change in place.
struct DeviceMemoryPayload {
  std::uint64_t live;  // bytes
  std::uint64_t peak;
  std::uint64_t blocks;     // allocations that `live` is the sum of
  std::uint64_t untracked;  // allocations that there was no room to remember: neither they nor their frees count
  std::uint32_t peak_step;
  std::uint32_t reserved_in_place;
  DeviceSlot device;  // none: the host, or not known
  MemorySpace space;
  std::uint8_t reserved[6];
};
static_assert(sizeof(DeviceMemoryPayload) == 48);
inline constexpr std::size_t kDeviceMemoryMutableBytes = offsetof(DeviceMemoryPayload, device);

struct DeviceCallEvent {
  std::int64_t time_ns;  // CLOCK_REALTIME, when the call had come back
  std::uint64_t
      address;  // of what was allocated, freed, mapped or copied to; of an event; a handle. Never dereferenced
  std::uint64_t bytes;
  std::uint64_t context;  // that was current on the thread; 0 unknown
  std::uint64_t stream;   // as the call was given it
  std::uint32_t tid;
  std::uint32_t step;
  StringId call;
  std::uint16_t result;  // 0: it succeeded
  DeviceSlot device;
  DeviceCallKind kind;
  std::uint8_t flags;  // DeviceCallFlags
  MemorySpace space;
  CopyDirection direction;
  std::uint8_t reserved;
  std::uint32_t sequence;  // low half of its number plus 1, stored last: tells whether the entry is whole
};
static_assert(sizeof(DeviceCallEvent) == 64);

inline constexpr std::size_t kCallRingEntries = 1024;

// Event number n is at index n % kCallRingEntries. All of it changes in place but `entry_count`.
struct CallRingPayload {
  std::uint64_t next;  // events so far
  std::array<DeviceCallEvent, kCallRingEntries> entries;
  std::uint64_t entry_count;  // kCallRingEntries
};
inline constexpr std::size_t kCallRingMutableBytes = offsetof(CallRingPayload, entry_count);
static_assert(sizeof(CallRingPayload) == sizeof(DeviceCallEvent) * kCallRingEntries + 16);

// ---- memory over time

enum class SeriesKind : std::uint8_t {
  none = 0,
#define DEVSAN_MEMORY_SERIES(enumerator, number, name, text) enumerator = number,
#include "trace/memory_series.def"
#undef DEVSAN_MEMORY_SERIES
};

// What counts the steps of samples.
enum class SeriesClock : std::uint8_t {
#define DEVSAN_SERIES_CLOCK(enumerator, number, name, step, text) enumerator = number,
#include "trace/series_clocks.def"
#undef DEVSAN_SERIES_CLOCK
};

struct MemorySample {
  std::int64_t time_ns;  // CLOCK_REALTIME
  std::uint64_t used;    // bytes; what `used` and `held` are is told by the kind of series
  std::uint64_t held;
  std::uint32_t step;
  std::uint32_t number;  // from 1, of the samples that were offered; 0: it is not there
};
static_assert(sizeof(MemorySample) == 32);

inline constexpr std::size_t kSeriesSamples = 256;

// One for each device, and one for the host. All but the last word changes in place.
struct MemorySeriesPayload {
  std::uint64_t offered;  // samples in the process's life
  std::uint32_t stride;   // one of so many is kept; 0 as long as it is 1
  std::uint32_t reserved_in_place;
  MemorySample latest;
  MemorySample peak;  // that with the most in use
  std::array<MemorySample, kSeriesSamples> samples;
  DeviceSlot device;  // none: the host
  SeriesKind kind;
  SeriesClock clock;
  std::uint8_t reserved[5];
};
static_assert(sizeof(MemorySeriesPayload) == 32 * kSeriesSamples + 88);
inline constexpr std::size_t kMemorySeriesMutableBytes = offsetof(MemorySeriesPayload, device);

enum HolderFlags : std::uint32_t {
  kHolderBounded = 1,  // a container that drops its oldest entries when it is full
  kHolderGraph = 2,    // the tensors that are held have an autograd graph, which holds others
  kHolderByGraph = 4,  // the holder is one tensor, whose graph alone holds what this record counts
  kHolderLonger = 8,   // with both: only that graph's nodes grow, with every step
};
// From this bit on: how many nodes the graph of one of the tensors has; 0 where it was not counted.
inline constexpr std::uint32_t kHolderNodesShift = 8;

inline constexpr std::size_t kSiteSamples = 64;

// The tensors that one operator made at one site on one device: `used` is what their storages take, `held` how many
// they are. The fields before `site` change in place.
struct SiteMemoryPayload {
  std::uint64_t offered;
  std::uint32_t stride;
  std::uint32_t holder_flags;  // HolderFlags
  MemorySample latest;
  MemorySample peak;
  std::array<MemorySample, kSiteSamples> samples;
  StringId holder;  // "losses[...]": what keeps them, as the program calls it; stored last; none where it was not found
  SiteId holder_site;  // that made the holder, if it is one tensor whose graph keeps them; else none
  SiteId site;
  OperatorId op;
  DeviceSlot device;
  SeriesClock clock;
};
static_assert(sizeof(SiteMemoryPayload) == 32 * kSiteSamples + 96);
inline constexpr std::size_t kSiteMemoryMutableBytes = offsetof(SiteMemoryPayload, site);

// ---- what was there when a device had no memory left

enum class LiveKind : std::uint8_t {
  other = 0,
#define DEVSAN_LIVE_KIND(enumerator, number, name, text) enumerator = number,
#include "trace/live_kinds.def"
#undef DEVSAN_LIVE_KIND
};

// The tensors of one site, kind and module.
struct LiveMemoryRow {
  std::uint64_t bytes;
  std::uint32_t count;
  SiteId site;
  StringId module;  // "layers.3": none where it is not known
  OperatorId op;
  LiveKind kind;
  std::uint8_t reserved;
};
static_assert(sizeof(LiveMemoryRow) == 24);

// Belongs to the Meeting of the same thread and time that has kOutOfMemory; of several the last one counts. Followed by
// LiveMemoryRow[rows], the largest first.
struct LiveMemoryPayload {
  std::int64_t time_ns;
  std::uint64_t allocated;  // in tensors, as PyTorch's allocator counts; 0 in this and the next: it was not asked
  std::uint64_t reserved;   // taken from the device
  std::uint64_t rest;       // bytes of storages that no row has room for
  std::uint32_t tid;
  DeviceSlot device;
  std::uint8_t reserved_bytes;
  std::uint16_t rows;
};
static_assert(sizeof(LiveMemoryPayload) == 40);

// ---- what was there when most was in use

enum class PeakMoment : std::uint8_t { none = 0, backward_begins = 1, backward_ended = 2 };

struct LiveKindSum {
  std::uint64_t bytes;
  std::uint64_t count;
};

inline constexpr std::size_t kLiveKindSums = 8;
inline constexpr std::size_t kPeakRows = 96;

// What one device, or the host, held at one moment.
struct LiveAtPeak {
  std::int64_t time_ns;
  std::uint64_t allocated;  // in tensors, as PyTorch's allocator counts; 0 in this and the next: it was not asked
  std::uint64_t reserved;   // taken from the device
  std::uint64_t listed;     // bytes of the storages that `kinds` are the sums of
  std::uint32_t step;
  std::uint16_t rows;
  PeakMoment moment;
  std::uint8_t reserved_bytes;
  std::array<LiveKindSum, kLiveKindSums> kinds;  // by LiveKind
  std::array<LiveMemoryRow, kPeakRows> lines;    // the largest, in that order, without modules
};
static_assert(sizeof(LiveAtPeak) == 24 * kPeakRows + 168);

// One for each device, and one for the host. All but the last word changes in place. One look is written while the
// other is the one that counts.
struct PeakMemoryPayload {
  std::uint64_t peak;        // the most that the allocator has ever had in tensors; 0: it was not asked
  std::uint32_t peak_step;   // in which that was seen first
  std::uint8_t current;      // 0 neither, 1 or 2: which look counts; stored last
  std::uint8_t in_backward;  // 1: it was reached between the begin and the end of a backward of that step
  std::uint16_t reserved_in_place;
  std::array<LiveAtPeak, 2> looks;
  DeviceSlot device;  // that of the host is "cpu"
  std::uint8_t reserved[7];
};
static_assert(sizeof(PeakMemoryPayload) == 2 * sizeof(LiveAtPeak) + 24);
inline constexpr std::size_t kPeakMemoryMutableBytes = offsetof(PeakMemoryPayload, device);

}  // namespace devsan::trace
