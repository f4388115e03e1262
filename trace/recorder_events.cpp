// What happens while a process runs: meetings, notices, and the rings with the last operators of each thread.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "trace/clock.h"
#include "trace/job_place.h"
#include "trace/quiet_section.h"
#include "trace/record_writing.h"
#include "trace/recorder.h"

namespace devsan::trace {
namespace {

constexpr std::size_t kMaxEvidence = std::numeric_limits<std::uint8_t>::max();
constexpr std::uint32_t kFree = 0;
constexpr std::uint32_t kInUse = 1;

bool is_dead(std::uint32_t tid) noexcept {
  return syscall(SYS_tgkill, getpid(), static_cast<pid_t>(tid), 0) != 0 && errno == ESRCH;
}

// A launcher within the process, such as Ray's, sets the variables after torch was loaded.
void complete_place(FileHeader& head, std::int32_t rank) noexcept {
  const JobPlace place = job_place();
  if (place.rank != rank) return;
  if (head.local_rank < 0) atom(head.local_rank).store(place.local_rank, std::memory_order_relaxed);
  if (head.node_plus_one != 0 || place.node < 0) return;
  atom(head.node_plus_one).store(static_cast<std::uint32_t>(place.node + 1), std::memory_order_relaxed);
}

}  // namespace

// Returns where the payload goes; its size, which is a multiple of 8, is known to readers from here on.
std::byte* Recorder::begin_record(std::byte* base, std::size_t payload_size) noexcept {
  FileHeader& head = header_of(base);
  const std::uint64_t size = sizeof(RecordHeader) + payload_size;
  const std::uint64_t offset = take_room(head.events_used, layout_[SectionKind::events].size, size);
  if (offset == kNoRoom<std::uint64_t>) {
    count_one(head.events_lost);
    return nullptr;
  }
  std::byte* const record = section(base, SectionKind::events) + offset;
  static_assert(offsetof(RecordHeader, sync) == 0 && offsetof(RecordHeader, size) == sizeof(std::uint32_t));
  atom(*reinterpret_cast<std::uint64_t*>(record))
      .store(std::uint64_t{kRecordSync} | size << (8 * sizeof(std::uint32_t)), std::memory_order_release);
  return record + sizeof(RecordHeader);
}

template <class Payload>
bool Recorder::add_record(std::byte* base, RecordKind kind, const Payload& payload) noexcept {
  static_assert(sizeof(Payload) % 8 == 0);
  std::byte* const place = begin_record(base, sizeof(payload));
  if (place == nullptr) return false;
  std::memcpy(place, &payload, sizeof(payload));
  publish(place, kind, {place, sizeof(payload)});
  return true;
}

void Recorder::add_run_info(std::string_view key, std::string_view value) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr) return;
  add_record(base, RecordKind::RunInfo, RunInfoPayload{intern_string(key), intern_string(value)});
}

void Recorder::add_notice(std::string_view text) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr) return;
  add_record(base, RecordKind::Notice, NoticePayload{intern_string(text), 0, wall_clock_ns()});
}

void Recorder::add_rank(std::int32_t rank, std::int32_t world_size) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr || rank_was_given_ || rank < 0) return;
  std::int32_t known = world_size_.load(std::memory_order_relaxed);
  do {
    if (world_size <= known) return;
  } while (!world_size_.compare_exchange_weak(known, world_size, std::memory_order_relaxed));
  rank_.store(rank, std::memory_order_relaxed);
  complete_place(header_of(base), rank);
  add_record(base, RecordKind::Rank, RankPayload{rank, world_size});
}

void Recorder::add_child_end(std::uint32_t pid, std::int32_t status) noexcept {
  std::byte* const base = writable_by_owner();
  if (base != nullptr) add_record(base, RecordKind::ChildEnd, ChildEndPayload{pid, status, wall_clock_ns()});
}

void Recorder::add_suppression(std::string_view file, std::int32_t line, std::string_view text,
                               std::string_view reason) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr) return;
  add_record(base, RecordKind::Suppression,
             SuppressionPayload{intern_string(file), line, intern_string(text), intern_string(reason)});
}

void Recorder::add_rule(std::string_view file, std::int32_t line, std::string_view text) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr) return;
  add_record(base, RecordKind::Rule, RulePayload{intern_string(file), line, intern_string(text), 0});
}

void Recorder::add_attribute_write(const AttributeWritePayload& write) noexcept {
  std::byte* const base = writable_by_owner();
  if (base != nullptr) add_record(base, RecordKind::AttributeWrite, write);
}

void Recorder::add_setting(const SettingPayload& setting) noexcept {
  std::byte* const base = writable_by_owner();
  if (base != nullptr) add_record(base, RecordKind::Setting, setting);
}

void Recorder::add_source_line(StringId file, std::int32_t line, std::string_view text) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr || file == StringId::none || line < 0) return;
  const std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(file)} << 32 | static_cast<std::uint32_t>(line);
  std::atomic<std::uint64_t>& seen = seen_source_lines_[hash_bytes(&key, sizeof(key)) % kSeenSourceLines];
  if (seen.load(std::memory_order_relaxed) == key) return;
  if (add_record(base, RecordKind::SourceLine, SourceLinePayload{file, line, intern_string(text), 0})) {
    seen.store(key, std::memory_order_relaxed);
  }
}

MeetingPayload* Recorder::add_meeting(const MeetingPayload& fixed, std::span<const OperandRecord> operands,
                                      std::span<const FrameRecord> frames, std::span<const FrameRecord> forward_frames,
                                      std::span<const NativeFrame> native_frames,
                                      std::span<const EvidenceRecord> evidence) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr) return nullptr;
  operands = at_most(operands);
  frames = at_most(frames);
  forward_frames = at_most(forward_frames);
  native_frames = at_most(native_frames);
  evidence = evidence.first(std::min(evidence.size(), kMaxEvidence));
  const std::size_t size = sizeof(MeetingPayload) + operands.size_bytes() + frames.size_bytes() +
                           forward_frames.size_bytes() + native_frames.size_bytes() + evidence.size_bytes();
  std::byte* const place = begin_record(base, size);
  if (place == nullptr) return nullptr;
  MeetingPayload head = fixed;
  head.operands = static_cast<std::uint16_t>(operands.size());
  head.frames = static_cast<std::uint16_t>(frames.size());
  head.forward_frames = static_cast<std::uint16_t>(forward_frames.size());
  head.native_frames = static_cast<std::uint16_t>(native_frames.size());
  head.evidence = static_cast<std::uint8_t>(evidence.size());
  std::memcpy(place, &head, sizeof(head));
  std::byte* end = append(place + sizeof(head), operands);
  end = append(append(end, frames), forward_frames);
  append(append(end, native_frames), evidence);
  publish(place, RecordKind::Meeting, {place + kMeetingMutableBytes, size - kMeetingMutableBytes});
  return reinterpret_cast<MeetingPayload*>(place);
}

void Recorder::bump_meeting(MeetingPayload* meeting, std::uint32_t step) noexcept {
  if (meeting == nullptr) return;
  atom(meeting->last_step).store(step, std::memory_order_relaxed);
  count_one(meeting->repeats);
}

void Recorder::set_meeting_flags(MeetingPayload* meeting, std::uint32_t flags) noexcept {
  if (meeting != nullptr) atom(meeting->flags).fetch_or(flags, std::memory_order_relaxed);
}

void Recorder::clear_meeting_flags(MeetingPayload* meeting, std::uint32_t flags) noexcept {
  if (meeting != nullptr) atom(meeting->flags).fetch_and(~flags, std::memory_order_relaxed);
}

TrafficPayload* Recorder::add_traffic(const TrafficPayload& fixed, std::span<const OperandRecord> operands,
                                      std::span<const FrameRecord> frames) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr) return nullptr;
  operands = at_most(operands);
  frames = at_most(frames);
  const std::size_t size = sizeof(TrafficPayload) + operands.size_bytes() + frames.size_bytes();
  std::byte* const place = begin_record(base, size);
  if (place == nullptr) return nullptr;
  TrafficPayload head = fixed;
  head.operands = static_cast<std::uint16_t>(operands.size());
  head.frames = static_cast<std::uint16_t>(frames.size());
  std::memcpy(place, &head, sizeof(head));
  append(append(place + sizeof(head), operands), frames);
  publish(place, RecordKind::Traffic, {place + kTrafficMutableBytes, size - kTrafficMutableBytes});
  return reinterpret_cast<TrafficPayload*>(place);
}

void Recorder::bump_traffic(TrafficPayload* traffic, std::uint32_t step, std::uint64_t bytes) noexcept {
  if (traffic == nullptr) return;
  if (atom(traffic->last_step).exchange(step, std::memory_order_relaxed) != step) count_one(traffic->steps);
  if (bytes != 0) atom(traffic->bytes).fetch_add(bytes, std::memory_order_relaxed);
  count_one(traffic->repeats);
}

void Recorder::set_taker(TrafficPayload* traffic, OperatorId op) noexcept {
  if (traffic != nullptr) atom(traffic->taker).store(op, std::memory_order_relaxed);
}

void Recorder::count_settled(TrafficPayload* traffic) noexcept {
  if (traffic != nullptr) count_one(traffic->settled);
}

DeviceCallPayload* Recorder::add_device_call(const DeviceCallPayload& fixed) noexcept {
  return add_changing(RecordKind::DeviceCall, fixed, kDeviceCallMutableBytes);
}

DeviceMemoryPayload* Recorder::add_device_memory(const DeviceMemoryPayload& fixed) noexcept {
  return add_changing(RecordKind::DeviceMemory, fixed, kDeviceMemoryMutableBytes);
}

// Filled where it lies: it is too large for a stack, and room that was never used is zero.
template <class Payload, class Fill>
Payload* Recorder::add_in_place(RecordKind kind, std::size_t mutable_bytes, Fill fill) noexcept {
  std::byte* const base = writable_by_owner();
  std::byte* const place = base != nullptr ? begin_record(base, sizeof(Payload)) : nullptr;
  if (place == nullptr) return nullptr;
  auto* const made = reinterpret_cast<Payload*>(place);
  fill(*made);
  publish(place, kind, {place + mutable_bytes, sizeof(Payload) - mutable_bytes});
  return made;
}

CallRingPayload* Recorder::add_call_ring() noexcept {
  return add_in_place<CallRingPayload>(RecordKind::CallRing, kCallRingMutableBytes,
                                       [](CallRingPayload& ring) { ring.entry_count = kCallRingEntries; });
}

CollectiveRingPayload* Recorder::add_collective_ring() noexcept {
  return add_in_place<CollectiveRingPayload>(
      RecordKind::CollectiveRing, kCollectiveRingMutableBytes,
      [](CollectiveRingPayload& ring) { ring.entry_count = kCollectiveEntries; });
}

void Recorder::add_collective_group(const CollectiveGroupPayload& fixed, std::span<const std::int32_t> ranks) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr) return;
  ranks = at_most(ranks);
  const std::size_t size = whole_words(sizeof(CollectiveGroupPayload) + ranks.size_bytes());
  std::byte* const place = begin_record(base, size);
  if (place == nullptr) return;
  CollectiveGroupPayload head = fixed;
  head.ranks = static_cast<std::uint32_t>(ranks.size());
  publish_whole(place, RecordKind::CollectiveGroup, head, ranks, size);
}

template <class Payload>
void Recorder::add_with_frames(RecordKind kind, const Payload& fixed, std::span<const FrameRecord> frames) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr) return;
  frames = at_most(frames);
  const std::size_t size = sizeof(Payload) + frames.size_bytes();
  std::byte* const place = begin_record(base, size);
  if (place == nullptr) return;
  Payload head = fixed;
  head.frames = static_cast<std::uint16_t>(frames.size());
  publish_whole(place, kind, head, frames, size);
}

void Recorder::add_failure(const FailurePayload& fixed, std::span<const FrameRecord> frames) noexcept {
  add_with_frames(RecordKind::Failure, fixed, frames);
}

void Recorder::add_waiting_stack(const WaitingStackPayload& fixed, std::span<const FrameRecord> frames) noexcept {
  add_with_frames(RecordKind::WaitingStack, fixed, frames);
}

void Recorder::add_long_wait(const CollectiveEntry& collective) noexcept {
  std::byte* const base = writable_by_owner();
  if (base != nullptr) add_record(base, RecordKind::LongWait, collective);
}

MemorySeriesPayload* Recorder::add_memory_series(SeriesKind kind, DeviceSlot device, SeriesClock clock) noexcept {
  return add_in_place<MemorySeriesPayload>(RecordKind::MemorySeries, kMemorySeriesMutableBytes,
                                           [&](MemorySeriesPayload& series) {
                                             series.kind = kind;
                                             series.device = device;
                                             series.clock = clock;
                                           });
}

StepSeriesPayload* Recorder::add_step_series() noexcept {
  return add_in_place<StepSeriesPayload>(RecordKind::StepSeries, kStepSeriesMutableBytes,
                                         [](StepSeriesPayload& series) { series.sample_count = kStepSamples; });
}

DataWaitsPayload* Recorder::add_data_waits() noexcept {
  return add_in_place<DataWaitsPayload>(RecordKind::DataWaits, kDataWaitsMutableBytes,
                                        [](DataWaitsPayload& waits) { waits.sample_count = kStepSamples; });
}

PeakMemoryPayload* Recorder::add_peak_memory(DeviceSlot device) noexcept {
  return add_in_place<PeakMemoryPayload>(RecordKind::PeakMemory, kPeakMemoryMutableBytes,
                                         [&](PeakMemoryPayload& peak) { peak.device = device; });
}

SiteMemoryPayload* Recorder::add_site_memory(SiteId site, OperatorId op, DeviceSlot device,
                                             SeriesClock clock) noexcept {
  SiteMemoryPayload fixed{};
  fixed.site = site;
  fixed.op = op;
  fixed.device = device;
  fixed.clock = clock;
  return add_changing(RecordKind::SiteMemory, fixed, kSiteMemoryMutableBytes);
}

void Recorder::set_holder(SiteMemoryPayload* series, StringId holder, std::uint32_t flags, SiteId made_at) noexcept {
  if (series == nullptr) return;
  atom(series->holder_site).store(made_at, std::memory_order_relaxed);
  atom(series->holder_flags).store(flags, std::memory_order_relaxed);
  atom(series->holder).store(holder, std::memory_order_release);
}

void Recorder::add_live_memory(const LiveMemoryPayload& fixed, std::span<const LiveMemoryRow> rows) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr) return;
  rows = at_most(rows);
  const std::size_t size = sizeof(LiveMemoryPayload) + rows.size_bytes();
  std::byte* const place = begin_record(base, size);
  if (place == nullptr) return;
  LiveMemoryPayload head = fixed;
  head.rows = static_cast<std::uint16_t>(rows.size());
  publish_whole(place, RecordKind::LiveMemory, head, rows, size);
}

template <class Payload>
Payload* Recorder::add_changing(RecordKind kind, const Payload& fixed, std::size_t mutable_bytes) noexcept {
  std::byte* const base = writable_by_owner();
  std::byte* const place = base != nullptr ? begin_record(base, sizeof(Payload)) : nullptr;
  if (place == nullptr) return nullptr;
  std::memcpy(place, &fixed, sizeof(fixed));
  publish(place, kind, {place + mutable_bytes, sizeof(Payload) - mutable_bytes});
  return reinterpret_cast<Payload*>(place);
}

ThreadRing* Recorder::acquire_ring(std::uint32_t tid, std::string_view name) noexcept {
  std::byte* const base = writable_by_owner();
  if (base == nullptr) return nullptr;
  const StringId name_id = intern_string(name);
  ThreadRing* const ring = claim_ring(base, tid);
  if (ring == nullptr) {
    count_one(header_of(base).threads_lost);
    return nullptr;
  }
  // Of a thread that is gone, perhaps: a reader passes over a ring that is free, whatever is in it.
  atom(ring->tid).store(tid, std::memory_order_relaxed);
  ring->name = name_id;
  ring->next = 0;
  atom(ring->state).store(kInUse, std::memory_order_release);
  return ring;
}

// A ring that is new, else one whose thread is gone; its state is kFree.
ThreadRing* Recorder::claim_ring(std::byte* base, std::uint32_t tid) noexcept {
  const auto rings = static_cast<std::uint32_t>(layout_.entries(SectionKind::threads));
  auto* const all = reinterpret_cast<ThreadRing*>(section(base, SectionKind::threads));
  const std::uint32_t fresh = take_room(header_of(base).threads_used, rings, 1);
  if (fresh != kNoRoom<std::uint32_t>) return &all[fresh];
  const KeepErrno keep;
  // Round and round, so that what a dead thread did last is kept as long as can be.
  const std::uint32_t first = next_victim_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < rings; ++i) {
    const std::uint32_t index = (first + i) % rings;
    ThreadRing& ring = all[index];
    std::uint32_t state = kInUse;
    if (atom(ring.state).load(std::memory_order_acquire) != kInUse) continue;
    const std::uint32_t holder = atom(ring.tid).load(std::memory_order_relaxed);
    if (holder != tid && !is_dead(holder)) continue;  // with our own tid: of a thread that had the number before us
    if (!atom(ring.state).compare_exchange_strong(state, kFree, std::memory_order_acq_rel)) continue;
    next_victim_.store((index + 1) % rings, std::memory_order_relaxed);
    return &ring;
  }
  return nullptr;
}

std::uint32_t Recorder::step() const noexcept {
  std::byte* const base = writable();
  return base == nullptr ? 0 : atom(header_of(base).step).load(std::memory_order_relaxed);
}

void Recorder::set_step(std::uint32_t step) noexcept {
  if (std::byte* const base = writable(); base != nullptr) {
    atom(header_of(base).step).store(step, std::memory_order_relaxed);
  }
}

void Recorder::count_optimizer_step() noexcept {
  if (std::byte* const base = writable(); base != nullptr) {
    atom(header_of(base).optimizer_steps).fetch_add(1, std::memory_order_relaxed);
  }
}

std::uint32_t Recorder::optimizer_steps() const noexcept {
  std::byte* const base = writable();
  return base == nullptr ? 0 : atom(header_of(base).optimizer_steps).load(std::memory_order_relaxed);
}

std::int32_t Recorder::world_size() const noexcept {
  std::byte* const base = base_.load(std::memory_order_acquire);
  const std::int32_t said = base == nullptr ? -1 : header_of(base).world_size;
  return std::max(said, world_size_.load(std::memory_order_relaxed));
}

}  // namespace devsan::trace
