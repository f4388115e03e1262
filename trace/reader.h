// Reads a trace file, whatever state its process left it in. Everything is checked: an id that points nowhere reads as
// absent, a record that fails its checksum is left out and told of as damage; times are from 0 to half of what an
// int64 holds. Needs nothing but the file.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "trace/collective_layout.h"
#include "trace/fact_layout.h"
#include "trace/file_layout.h"
#include "trace/memory_layout.h"
#include "trace/placement_layout.h"
#include "trace/step_layout.h"

namespace devsan::trace {

struct Damage {
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;   // that could not be used; 0 where unknown
  std::string reason;        // one sentence for a person
};

struct Meeting {
  std::uint64_t offset = 0;  // of its record in the event section
  MeetingPayload fixed{};
  std::vector<OperandRecord> operands;
  std::vector<FrameRecord> frames;
  std::vector<FrameRecord> forward_frames;
  std::vector<NativeFrame> native_frames;
  std::vector<EvidenceRecord> evidence;  // about operands that are there, of kinds that are known
};

// The objects around the operands of a meeting: every index in it is one of an object, frames aside.
struct MeetingFacts {
  FactsPayload fixed{};
  std::vector<ObjectFact> objects;
  std::vector<LinkFact> links;
  std::vector<VariableFact> variables;
  std::vector<CopyFact> copies;
};

struct SourceFile {
  std::uint64_t size = 0;  // of the file, also where its text was not kept
  std::uint64_t hash = 0;  // source_hash() of it
  std::string_view text;   // lives as long as the trace
};

struct Traffic {
  TrafficPayload fixed{};
  std::vector<OperandRecord> operands;
  std::vector<FrameRecord> frames;
};

struct ThreadTail {
  std::uint32_t tid = 0;
  std::string name;
  std::uint64_t operators = 0;  // recorded in the thread's life
  std::vector<RingEntry> last;  // newest first
};

// The last calls of the device's driver or runtime that the process made.
struct LastCalls {
  std::uint64_t recorded = 0;         // in the process's life
  std::vector<DeviceCallEvent> last;  // newest first
};

// Memory of the host or of a device, over time.
struct MemorySeries {
  SeriesKind kind = SeriesKind::none;
  DeviceSlot device = DeviceSlot::none;
  SeriesClock clock = SeriesClock::iterations;
  std::vector<MemorySample> samples;  // oldest first, at even distances but for the last, which is the latest of all
  std::optional<MemorySample> peak;   // none where it was being written
};

// What one operator made at one site on one device, over time: `used` is bytes, `held` storages.
struct SiteMemory {
  SiteId site = SiteId::none;
  OperatorId op = OperatorId::none;
  DeviceSlot device = DeviceSlot::none;
  SeriesClock clock = SeriesClock::iterations;
  std::vector<MemorySample> samples;  // as in MemorySeries
  StringId holder = StringId::none;
  std::uint32_t holder_flags = 0;
  SiteId holder_site = SiteId::none;
};

// When iterations and their phases were.
struct StepSeries {
  std::uint64_t ended = 0;          // iterations in the process's life
  std::vector<StepTime> steps;      // as MemorySeries::samples
  std::optional<StepTime> longest;  // of those that were looked at
  std::optional<StepTime> current;  // that had not ended, as far as it had come
};

// How long iterations waited for a loader of data.
struct DataWaits {
  bool known = false;           // the process could see such waits
  std::vector<DataWait> steps;  // of those iterations that StepSeries has
};

// What a device, or the host, held when most was in use.
struct PeakMemory {
  DeviceSlot device = DeviceSlot::none;
  std::uint64_t peak = 0;
  std::uint32_t peak_step = 0;
  bool in_backward = false;
  std::int64_t time_ns = 0;  // of the look, as all below
  std::uint64_t allocated = 0;
  std::uint64_t reserved = 0;
  std::uint64_t listed = 0;
  std::uint32_t step = 0;
  PeakMoment moment = PeakMoment::none;
  std::array<LiveKindSum, kLiveKindSums> kinds{};
  std::vector<LiveMemoryRow> rows;
};

struct LiveMemory {
  LiveMemoryPayload fixed{};
  std::vector<LiveMemoryRow> rows;
};

// The last collectives that the process entered.
struct Collectives {
  std::uint64_t entered = 0;          // in the process's life
  std::vector<CollectiveEntry> last;  // newest first
};

struct CollectiveGroup {
  CollectiveGroupPayload fixed{};
  std::vector<std::int32_t> ranks;  // in the whole run; empty where torch did not say
};

struct Failure {
  FailurePayload fixed{};
  std::vector<FrameRecord> frames;  // innermost first
};

struct WaitingStack {
  WaitingStackPayload fixed{};
  std::vector<FrameRecord> frames;  // innermost first
};

// One look at where the program keeps its tensors: those that were not where the look before it found them.
struct Placements {
  PlacementsPayload fixed{};
  std::vector<PlacementRecord> records;
};

// A rule that the process was given, as rules/ writes it.
struct RuleLine {
  std::string file;
  int line = 0;
  std::string text;
};

struct Notice {
  std::string text;
  std::int64_t time_ns = 0;
};

// An entry of the file of suppressions that the process was given.
struct SuppressionLine {
  std::string file;
  int line = 0;
  std::string text;
  std::string reason;
};

// Owns a private copy of the file's bytes. Immutable after open, but for the count of what was made of it; any number
// of threads may read it.
class TraceFile {
 public:
  // What may be made of one file, in bytes of text and of what holds it. Its records can name the same long texts and
  // histories over and over, so that a file of a megabyte would else become gigabytes. A sound trace comes to a tenth.
  static constexpr std::uint64_t kMostMade = std::uint64_t{1} << 30;

  // A file of which nothing can be used gives a Damage instead: empty, no trace, another major version, unreadable.
  static std::variant<TraceFile, Damage> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const FileHeader& header() const { return header_; }  // its sections cut to what the file holds of them
  std::string host() const;
  std::optional<int> rank() const { return rank_; }  // given at the start, or learned later
  std::optional<int> local_rank() const { return local_rank_; }
  std::optional<int> world_size() const { return world_size_; }
  std::optional<int> node() const;             // its number in the job
  std::optional<int> attempt() const;          // how often the launcher had started the processes anew
  std::string run() const;                     // which run it belongs to; empty where that is not known
  std::string_view string(StringId id) const;  // "" for none or damaged; in a damaged file perhaps no UTF-8
  std::string_view operator_name(OperatorId id) const;
  std::string_view device_name(DeviceSlot slot) const;
  std::optional<Site> site(SiteId id) const;
  std::optional<LineageNode> lineage(LineageId id) const;
  // The node, its parents, up to the origin: newest first. Ends early at damage; never loops.
  std::vector<LineageNode> lineage_chain(LineageId id) const;
  // The calls that led to a step of a history, the innermost first; empty where they are not known.
  std::vector<SiteId> calls_of(const LineageNode& step) const { return calls_from(LineageId{step.calls}); }
  // The same from the call that a step, or a copy, names.
  std::vector<SiteId> calls_from(LineageId call) const;
  std::string_view source_line(StringId file, std::int32_t line) const;  // "" where it was not kept

  const std::vector<Meeting>& meetings() const { return meetings_; }  // in the order they were published
  const MeetingFacts* facts_of(const Meeting& meeting) const;         // null where none were recorded
  const std::map<StringId, SourceFile>& source_files() const { return source_files_; }
  const std::vector<Traffic>& traffic() const { return traffic_; }  // the same
  const std::vector<std::pair<std::string, std::string>>& run_info() const { return run_info_; }
  const std::vector<Notice>& notices() const { return notices_; }
  const std::vector<ChildEndPayload>& child_ends() const { return child_ends_; }
  const std::vector<SuppressionLine>& suppressions() const { return suppressions_; }
  const std::vector<RuleLine>& rules() const { return rules_; }
  const std::vector<AttributeWritePayload>& attribute_writes() const { return attribute_writes_; }
  const std::vector<Placements>& placements() const { return placements_; }  // oldest first
  const std::vector<SettingPayload>& settings() const { return settings_; }  // the same
  const std::vector<ThreadTail>& threads() const { return threads_; }
  const std::vector<DeviceCallPayload>& device_calls() const { return device_calls_; }
  const std::vector<DeviceMemoryPayload>& device_memory() const { return device_memory_; }
  const LastCalls& last_calls() const { return last_calls_; }
  const std::vector<MemorySeries>& memory_series() const { return memory_series_; }
  const StepSeries& step_series() const { return step_series_; }
  const DataWaits& data_waits() const { return data_waits_; }
  const std::vector<PeakMemory>& peak_memory() const { return peak_memory_; }
  const std::vector<SiteMemory>& site_memory() const { return site_memory_; }
  const std::vector<LiveMemory>& live_memory() const { return live_memory_; }
  const Collectives& collectives() const { return collectives_; }
  const std::vector<CollectiveGroup>& collective_groups() const { return collective_groups_; }
  const std::vector<Failure>& failures() const { return failures_; }
  const std::vector<WaitingStack>& waiting_stacks() const { return waiting_stacks_; }
  const std::vector<CollectiveEntry>& long_waits() const { return long_waits_; }
  const std::vector<Damage>& damage() const { return damage_; }
  // More was asked of it than kMostMade: since then, texts and sites read as absent.
  bool is_used_up() const { return made_->load(std::memory_order_relaxed) > kMostMade; }
  std::uint64_t lost_facts() const { return header_.facts_lost; }
  std::uint64_t lost_events() const { return header_.events_lost; }

 private:
  class Loader;  // fills in everything below, once

  TraceFile() = default;

  // The bytes of entry `index`, empty where there is none.
  std::span<const std::byte> entry(SectionKind kind, std::uint64_t index, std::size_t size) const;
  std::span<const std::byte> section(SectionKind kind) const;
  // Counts what is about to be made of the file; false where that is too much.
  bool make(std::uint64_t bytes) const;

  std::filesystem::path path_;
  FileHeader header_{};
  std::optional<int> rank_;
  std::optional<int> local_rank_;
  std::optional<int> world_size_;
  std::array<std::vector<std::byte>, kSectionCount> sections_;  // of each what is in use; what is behind it is zero
  std::map<std::pair<StringId, std::int32_t>, StringId> source_lines_;
  std::vector<Meeting> meetings_;
  std::map<std::uint64_t, MeetingFacts> facts_;  // by the offset of the meeting's record
  std::map<StringId, SourceFile> source_files_;
  std::vector<Traffic> traffic_;
  std::vector<std::pair<std::string, std::string>> run_info_;
  std::vector<Notice> notices_;
  std::vector<ChildEndPayload> child_ends_;
  std::vector<SuppressionLine> suppressions_;
  std::vector<RuleLine> rules_;
  std::vector<AttributeWritePayload> attribute_writes_;
  std::vector<Placements> placements_;
  std::vector<SettingPayload> settings_;
  std::vector<ThreadTail> threads_;
  std::vector<DeviceCallPayload> device_calls_;
  std::vector<DeviceMemoryPayload> device_memory_;
  LastCalls last_calls_;
  std::vector<MemorySeries> memory_series_;
  StepSeries step_series_;
  DataWaits data_waits_;
  std::vector<PeakMemory> peak_memory_;
  std::vector<SiteMemory> site_memory_;
  std::vector<LiveMemory> live_memory_;
  Collectives collectives_;
  std::vector<CollectiveGroup> collective_groups_;
  std::vector<Failure> failures_;
  std::vector<WaitingStack> waiting_stacks_;
  std::vector<CollectiveEntry> long_waits_;
  std::vector<Damage> damage_;
  std::unique_ptr<std::atomic<std::uint64_t>> made_ = std::make_unique<std::atomic<std::uint64_t>>(0);
};

// The header alone, of many files: nothing where it is none of this version.
std::optional<FileHeader> read_header(const std::filesystem::path& path);
std::string run_of(const FileHeader& header);

}  // namespace devsan::trace
