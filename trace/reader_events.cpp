// The event log and the rings of a trace file. The log is a chain of records; where the chain is broken, the next
// record is looked for by its sync word, and what lies between is told of as damage.
#include <algorithm>
#include <cstring>
#include <limits>

#include "trace/crc32c.h"
#include "trace/reader_loader.h"
#include "trace/record_reading.h"
#include "trace/record_sums.h"

namespace devsan::trace {
namespace {

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

bool known(EvidenceKind kind) {
  switch (kind) {
    case EvidenceKind::none:
      return false;
#define DEVSAN_EVIDENCE(enumerator, number, name, text) case EvidenceKind::enumerator:
#include "trace/evidence_kinds.def"
#undef DEVSAN_EVIDENCE
      return true;
  }
  return false;
}

// Everything that the sum does not cover, and what a writer with other ideas may have put there.
void make_sound(Phase& phase, std::vector<OperandRecord>& operands) {
  if (phase > Phase::checkpoint) phase = Phase::other;
  for (OperandRecord& operand : operands) {
    if (operand.name_kind > NameKind::temporary) operand.name_kind = NameKind::unknown;
  }
}

void make_sound(Meeting& meeting) {
  make_sound(meeting.fixed.phase, meeting.operands);
  std::erase_if(meeting.evidence, [&](const EvidenceRecord& evidence) {
    const bool about_something = evidence.operand < meeting.operands.size() || evidence.operand == kWholeFinding;
    return !about_something || !known(evidence.kind);
  });
}

// A finding, and what it tells of each operand and frame, takes several times the bytes of its record.
constexpr std::uint64_t kMadeOfRecord = 1024;
constexpr std::uint64_t kMadeOfByte = 2;

constexpr const char* kDamaged = "a record in the event log is damaged and left out";

bool known(RecordKind kind) {
  switch (kind) {
    case RecordKind::unfinished:
      return false;
#define DEVSAN_RECORD(name, number, text) case RecordKind::name:
#include "trace/record_kinds.def"
#undef DEVSAN_RECORD
      return true;
  }
  return false;
}

}  // namespace

// Neither the counter nor the size of a broken record is relied on: behind the last record the log is zero.
void TraceFile::Loader::read_events() {
  events_ = file_.section(SectionKind::events);
  place_ = file_.header_.sections[static_cast<std::size_t>(SectionKind::events) - 1].offset;
  std::uint64_t gap = 0;  // where the chain was broken
  std::uint64_t at = 0;
  while (at + sizeof(RecordHeader) <= events_.size()) {
    RecordHeader header;
    const Found found = examine(at, header);
    if (found == Found::broken) {
      at += 8;
      continue;
    }
    if (gap < at) tell_of_gap(gap, at);
    const std::uint64_t offset = place_ + at;
    const auto payload = events_.subspan(at + sizeof(header), header.size - sizeof(header));
    if (found == Found::unfinished) complain(offset, header.size, "a record was being written when the process ended");
    if (found == Found::record && !take_record(header.kind, payload)) complain(offset, header.size, kDamaged);
    at += header.size;
    gap = at;
  }
  if (gap < events_.size()) tell_of_gap(gap, events_.size());
}

TraceFile::Loader::Found TraceFile::Loader::examine(std::uint64_t at, RecordHeader& header) {
  header = read<RecordHeader>(events_.subspan(at));
  if (header.sync != kRecordSync) return Found::broken;
  const std::uint64_t room = events_.size() - at;
  if (header.size < sizeof(header) || header.size % 8 != 0 || header.size > room) return Found::broken;
  const auto payload = events_.subspan(at + sizeof(header), header.size - sizeof(header));
  if (known(header.kind)) return sum_is_right(header, payload) ? Found::record : Found::broken;
  // Nothing sums up these: their size is believed where the chain goes on behind it, or ends.
  const auto behind = events_.subspan(at + header.size);
  const auto next = behind.size() < sizeof(header) ? RecordHeader{} : read<RecordHeader>(behind);
  if (next.sync != kRecordSync && next.sync != 0) return Found::broken;
  if (header.kind == RecordKind::unfinished) return Found::unfinished;
  return file_.header_.minor_version > kMinorVersion ? Found::unknown : Found::broken;
}

bool TraceFile::Loader::sum_is_right(const RecordHeader& header, std::span<const std::byte> payload) {
  checked_bytes_ += payload.size();
  if (checked_bytes_ > 4 * std::uint64_t{events_.size()}) return false;
  const std::size_t left_out = bytes_without_sum(header.kind);
  return payload.size() >= left_out && crc32c(payload.subspan(left_out)) == header.checksum;
}

// Behind the last record a sound log is zero, and so is room that a killed process had taken but not begun to fill.
void TraceFile::Loader::tell_of_gap(std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t used = std::clamp(file_.header_.events_used, begin, end);
  if (!all_zero(events_.subspan(begin, end - begin))) {
    complain(place_ + begin, (used > begin ? used : end) - begin, kDamaged);
  } else if (used > begin) {
    complain(place_ + begin, used - begin, "a record was about to be written when the process ended");
  }
}

bool TraceFile::Loader::take_record(RecordKind kind, std::span<const std::byte> payload) {
  if (!file_.make(kMadeOfRecord + kMadeOfByte * payload.size())) return false;
  switch (kind) {
    case RecordKind::unfinished:
      return false;
    case RecordKind::RunInfo: {
      if (payload.size() != sizeof(RunInfoPayload)) return false;
      const auto info = read<RunInfoPayload>(payload);
      file_.run_info_.emplace_back(file_.string(info.key), file_.string(info.value));
      return true;
    }
    case RecordKind::SourceLine: {
      if (payload.size() != sizeof(SourceLinePayload)) return false;
      const auto line = read<SourceLinePayload>(payload);
      file_.source_lines_.emplace(std::pair(line.file, line.line), line.text);
      return true;
    }
    case RecordKind::Notice: {
      if (payload.size() != sizeof(NoticePayload)) return false;
      const auto notice = read<NoticePayload>(payload);
      file_.notices_.push_back({std::string(file_.string(notice.text)), notice.time_ns});
      return true;
    }
    case RecordKind::ChildEnd: {
      if (payload.size() != sizeof(ChildEndPayload)) return false;
      file_.child_ends_.push_back(read<ChildEndPayload>(payload));
      return true;
    }
    case RecordKind::Suppression: {
      if (payload.size() != sizeof(SuppressionPayload)) return false;
      const auto entry = read<SuppressionPayload>(payload);
      file_.suppressions_.push_back({std::string(file_.string(entry.file)), entry.line,
                                     std::string(file_.string(entry.text)), std::string(file_.string(entry.reason))});
      return true;
    }
    case RecordKind::Rule: {
      if (payload.size() != sizeof(RulePayload)) return false;
      const auto rule = read<RulePayload>(payload);
      file_.rules_.push_back({std::string(file_.string(rule.file)), rule.line, std::string(file_.string(rule.text))});
      return true;
    }
    case RecordKind::Rank: {
      if (payload.size() != sizeof(RankPayload)) return false;
      const auto learned = read<RankPayload>(payload);
      if (learned.rank < 0) return true;
      // The task that this process seemed to be is not the rank that it is, so it is not the one of its node either.
      if (file_.header_.rank >= 0 && learned.rank != file_.header_.rank) file_.local_rank_.reset();
      file_.rank_ = learned.rank;
      if (learned.world_size > 0) file_.world_size_ = learned.world_size;
      return true;
    }
    case RecordKind::Meeting:
      return take_meeting(payload);
    case RecordKind::Facts:
      return take_facts(payload);
    case RecordKind::SourceFile:
      return take_source_file(payload);
    case RecordKind::AttributeWrite:
      if (payload.size() != sizeof(AttributeWritePayload)) return false;
      file_.attribute_writes_.push_back(read<AttributeWritePayload>(payload));
      return true;
    case RecordKind::Setting:
      if (payload.size() != sizeof(SettingPayload)) return false;
      file_.settings_.push_back(read<SettingPayload>(payload));
      return true;
    case RecordKind::Placements:
      return take_placements(payload);
    case RecordKind::Traffic:
      return take_traffic(payload);
    case RecordKind::DeviceCall:
      return take_device_call(payload);
    case RecordKind::DeviceMemory:
      return take_device_memory(payload);
    case RecordKind::CallRing:
      return take_call_ring(payload);
    case RecordKind::MemorySeries:
      return take_memory_series(payload);
    case RecordKind::StepSeries:
      return take_step_series(payload);
    case RecordKind::DataWaits:
      return take_data_waits(payload);
    case RecordKind::PeakMemory:
      return take_peak_memory(payload);
    case RecordKind::SiteMemory:
      return take_site_memory(payload);
    case RecordKind::LiveMemory:
      return take_live_memory(payload);
    case RecordKind::CollectiveRing:
      return take_collective_ring(payload);
    case RecordKind::CollectiveGroup:
      return take_collective_group(payload);
    case RecordKind::LongWait:
      return take_long_wait(payload);
    case RecordKind::Failure:
      return take_with_frames(payload, file_.failures_);
    case RecordKind::WaitingStack:
      return take_with_frames(payload, file_.waiting_stacks_);
  }
  return false;
}

bool TraceFile::Loader::take_meeting(std::span<const std::byte> payload) {
  if (payload.size() < sizeof(MeetingPayload)) return false;
  Meeting meeting;
  meeting.offset = static_cast<std::uint64_t>(payload.data() - events_.data()) - sizeof(RecordHeader);
  meeting.fixed = read<MeetingPayload>(payload);
  const MeetingPayload& fixed = meeting.fixed;
  std::span<const std::byte> rest = payload.subspan(sizeof(MeetingPayload));
  const std::size_t needed = fixed.operands * sizeof(OperandRecord) +
                             (std::size_t{fixed.frames} + fixed.forward_frames) * sizeof(FrameRecord) +
                             fixed.native_frames * sizeof(NativeFrame) + fixed.evidence * sizeof(EvidenceRecord);
  if (rest.size() != needed) return false;
  meeting.operands = take<OperandRecord>(rest, fixed.operands);
  meeting.frames = take<FrameRecord>(rest, fixed.frames);
  meeting.forward_frames = take<FrameRecord>(rest, fixed.forward_frames);
  meeting.native_frames = take<NativeFrame>(rest, fixed.native_frames);
  meeting.evidence = take<EvidenceRecord>(rest, fixed.evidence);
  make_sound(meeting);
  file_.meetings_.push_back(std::move(meeting));
  return true;
}

bool TraceFile::Loader::take_traffic(std::span<const std::byte> payload) {
  if (payload.size() < sizeof(TrafficPayload)) return false;
  Traffic traffic;
  traffic.fixed = read<TrafficPayload>(payload);
  std::span<const std::byte> rest = payload.subspan(sizeof(TrafficPayload));
  if (rest.size() != traffic.fixed.operands * sizeof(OperandRecord) + traffic.fixed.frames * sizeof(FrameRecord)) {
    return false;
  }
  traffic.operands = take<OperandRecord>(rest, traffic.fixed.operands);
  traffic.frames = take<FrameRecord>(rest, traffic.fixed.frames);
  make_sound(traffic.fixed.phase, traffic.operands);
  file_.traffic_.push_back(std::move(traffic));
  return true;
}

void TraceFile::Loader::read_threads() {
  const std::span<const std::byte> rings = file_.section(SectionKind::threads);
  const std::uint64_t offset = file_.header_.sections[static_cast<std::size_t>(SectionKind::threads) - 1].offset;
  for (std::size_t at = 0; at + sizeof(ThreadRing) <= rings.size(); at += sizeof(ThreadRing)) {
    const auto ring = read<ThreadRing>(rings.subspan(at));
    if (ring.state == 1) {
      read_tail(ring, offset + at);
    } else if (ring.state != 0) {
      complain(offset + at, sizeof(ThreadRing), "the last operators of a thread are damaged and left out");
    }
  }
}

// All but the oldest entry: that one may be half overwritten by an operator that was not counted yet. Sequence numbers
// follow the count, from wherever they began.
void TraceFile::Loader::read_tail(const ThreadRing& ring, std::uint64_t offset) {
  ThreadTail tail{ring.tid, std::string(file_.string(ring.name)), ring.next, {}};
  const std::uint64_t count = std::min<std::uint64_t>(ring.next, kRingEntries - 1);
  const std::uint32_t newest = ring.entries[(ring.next - 1) % kRingEntries].sequence;
  for (std::uint32_t back = 0; back < count; ++back) {
    const RingEntry& entry = ring.entries[(ring.next - 1 - back) % kRingEntries];
    if (entry.sequence == newest - back) tail.last.push_back(entry);
  }
  const std::uint64_t bad = count - tail.last.size();
  if (bad > 0) {
    complain(offset, bad * sizeof(RingEntry),
             std::to_string(bad) + " of the last operators of thread " + std::to_string(ring.tid) + " are damaged");
  }
  file_.threads_.push_back(std::move(tail));
}

}  // namespace devsan::trace
