// The writer of a trace file: one per process, living in libdevsan.so, used by the hooks through a pointer.
//
// Thread-safety: every member may be called by any thread, with or without the GIL, but not from a signal handler.
// Nothing here throws, and nothing allocates from the heap: what is recorded goes into the mapped file, and what has no
// room is counted as lost. Members named `add_*` and `intern_*` return the `none` id when the file is full or closed.
//
// Forks: the state that says "this process records" lies in a page that the kernel wipes in a forked child, so a child
// is inactive from its first instruction, however it was forked (a vfork child shares the parent's memory, and is not
// expected to run an operator). The first operator in the child, or its first call that uses a device, calls
// reopen_in_child(), which gives it a file of its own, with the tables of the parent, so that ids kept in memory stay
// valid.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "trace/collective_layout.h"
#include "trace/fact_layout.h"
#include "trace/file_layout.h"
#include "trace/fork_page.h"
#include "trace/hash_index.h"
#include "trace/layout.h"
#include "trace/mapped_file.h"
#include "trace/memory_layout.h"
#include "trace/placement_layout.h"
#include "trace/step_layout.h"

namespace devsan::trace {

struct JobPlace;
struct ProcessInfo;

// Of the run that a process and its children belong to; see FileHeader.
struct RunIdentity {
  std::array<char, 64> name{};
  std::uint64_t rendezvous = 0;
};

struct RecorderSettings {
  const char* directory = nullptr;  // created if missing, 0700
  std::size_t file_size = 0;        // bytes; clamped to what the layout needs at least
  RunIdentity run{};
};

// Lives in static storage: constant-initialised, and never destroyed, since threads may outlive the end of main.
class Recorder {
 public:
  // Makes DIR/rank<R>.<pid>.devsan (O_EXCL, O_NOFOLLOW, 0600; "-1", "-2", … before the extension when the name is
  // taken), reserves its space before mapping it, closes the descriptor, and writes the header. Call once.
  OpenResult open(const RecorderSettings& settings) noexcept;

  // In a fork child: the same in the same directory, copying the parent's strings, operators, sites and lineage. Safe
  // to be called by several threads at once; those that lose the race wait. False when no file could be made; then the
  // process stays inactive for good and `gave_up()` is true.
  bool reopen_in_child() noexcept;

  // Stores the status that the process gives to exit() or _exit(), before it closes the trace. Who waits for the
  // process knows better, and writes over it.
  void note_exit_status(int status) noexcept;

  // Stores how the process ends; the first word stands. The mapping stays, so that threads still running do no harm.
  // `executed` is said before an exec, which may fail: recording goes on, and `open` takes the word back. Does nothing
  // in a process that does not own the file, such as a vfork child about to exec.
  void close(CloseMark mark) noexcept;

  bool active() const noexcept { return epoch_page_->epoch.load(std::memory_order_relaxed) != 0; }
  const EpochPage* epoch_page() const noexcept { return epoch_page_; }                // another one after open()
  bool gave_up() const noexcept { return gave_up_.load(std::memory_order_relaxed); }  // also once closed
  const char* path() const noexcept { return path_; }  // of this process's file, absolute; "" before open
  const char* directory() const noexcept { return directory_; }
  int last_errno() const noexcept { return last_errno_.load(std::memory_order_relaxed); }  // of a failed open

  // Equal strings get one id (a lossy index: now and then a string is stored twice). At most 64 KiB each.
  StringId intern_string(std::string_view text) noexcept;
  // So do equal operators, sites and nodes. A site without any file and a node without `how` are none.
  OperatorId add_operator(std::string_view qualified_name) noexcept;
  SiteId add_site(const Site& site) noexcept;
  LineageId add_lineage(const LineageNode& node) noexcept;
  DeviceSlot intern_device(std::string_view name) noexcept;

  // Read back what this process published; empty or zeroed for `none`.
  std::string_view string(StringId id) const noexcept;
  Site site(SiteId id) const noexcept;
  LineageNode lineage(LineageId id) const noexcept;
  StringId operator_name(OperatorId id) const noexcept;
  StringId device_name(DeviceSlot slot) const noexcept;

  // A ring for the calling thread; one of a dead thread when all are taken; null when none can be had.
  ThreadRing* acquire_ring(std::uint32_t tid, std::string_view name) noexcept;

  void add_run_info(std::string_view key, std::string_view value) noexcept;
  void add_notice(std::string_view text) noexcept;
  // What the process group of all ranks says, for a process that has no RANK in its environment. Forked children
  // inherit it.
  // A smaller group than the last one is a part of it, and is passed over.
  void add_rank(std::int32_t rank, std::int32_t world_size) noexcept;
  // Unlike the others it may be called in a signal handler.
  void add_child_end(std::uint32_t pid, std::int32_t status) noexcept;
  void add_suppression(std::string_view file, std::int32_t line, std::string_view text,
                       std::string_view reason) noexcept;
  void add_rule(std::string_view file, std::int32_t line, std::string_view text) noexcept;
  void add_attribute_write(const AttributeWritePayload& write) noexcept;
  void add_setting(const SettingPayload& setting) noexcept;
  // `fixed.count` is taken from the span. Leaves a part of the event section to what the process finds later.
  void add_placements(const PlacementsPayload& fixed, std::span<const PlacementRecord> records) noexcept;
  // Kept once per line; what is said of a line later is dropped.
  void add_source_line(StringId file, std::int32_t line, std::string_view text) noexcept;

  // Appends a meeting. The returned pointer is to the payload in the file, for bump_meeting and the flags;
  // null when the file is full (counted). The counts in `fixed` are taken from the spans.
  MeetingPayload* add_meeting(const MeetingPayload& fixed, std::span<const OperandRecord> operands,
                              std::span<const FrameRecord> frames, std::span<const FrameRecord> forward_frames,
                              std::span<const NativeFrame> native_frames,
                              std::span<const EvidenceRecord> evidence = {}) noexcept;
  // The facts of a meeting that add_meeting() returned; the counts in `fixed` are taken from the spans. They, and texts
  // of files, leave a part of the event section to what the process finds later.
  void add_facts(const MeetingPayload* meeting, const FactsPayload& fixed, std::span<const ObjectFact> objects,
                 std::span<const LinkFact> links, std::span<const VariableFact> variables,
                 std::span<const CopyFact> copies) noexcept;
  // Once for each file; true for who is the first to ask, and has to add it.
  bool wants_source_file(StringId file) noexcept;
  // Without its text where that is too long, or `with_text` is false.
  void add_source_file(StringId file, std::string_view text, bool with_text) noexcept;
  static void bump_meeting(MeetingPayload* meeting, std::uint32_t step) noexcept;
  static void set_meeting_flags(MeetingPayload* meeting, std::uint32_t flags) noexcept;  // adds to what is set
  static void clear_meeting_flags(MeetingPayload* meeting, std::uint32_t flags) noexcept;

  // The same for traffic. A bump adds `bytes`, and one step where `step` is another than that of the time before.
  TrafficPayload* add_traffic(const TrafficPayload& fixed, std::span<const OperandRecord> operands,
                              std::span<const FrameRecord> frames) noexcept;
  static void bump_traffic(TrafficPayload* traffic, std::uint32_t step, std::uint64_t bytes) noexcept;
  static void set_taker(TrafficPayload* traffic, OperatorId op) noexcept;
  static void count_settled(TrafficPayload* traffic) noexcept;

  // Records that change in place from then on, by the functions of trace/device_calls.h and trace/memory_series.h. Null
  // when the file is full.
  DeviceCallPayload* add_device_call(const DeviceCallPayload& fixed) noexcept;
  DeviceMemoryPayload* add_device_memory(const DeviceMemoryPayload& fixed) noexcept;
  CallRingPayload* add_call_ring() noexcept;
  CollectiveRingPayload* add_collective_ring() noexcept;  // changed by trace/collective_ring.h
  MemorySeriesPayload* add_memory_series(SeriesKind kind, DeviceSlot device, SeriesClock clock) noexcept;
  StepSeriesPayload* add_step_series() noexcept;
  DataWaitsPayload* add_data_waits() noexcept;
  PeakMemoryPayload* add_peak_memory(DeviceSlot device) noexcept;
  SiteMemoryPayload* add_site_memory(SiteId site, OperatorId op, DeviceSlot device, SeriesClock clock) noexcept;
  static void set_holder(SiteMemoryPayload* series, StringId holder, std::uint32_t flags,
                         SiteId made_at = SiteId::none) noexcept;

  // The counts in `fixed` are taken from the spans.
  void add_collective_group(const CollectiveGroupPayload& fixed, std::span<const std::int32_t> ranks) noexcept;
  void add_failure(const FailurePayload& fixed, std::span<const FrameRecord> frames) noexcept;
  void add_long_wait(const CollectiveEntry& collective) noexcept;
  void add_waiting_stack(const WaitingStackPayload& fixed, std::span<const FrameRecord> frames) noexcept;

  // What was live when a device had no memory left; `fixed.rows` is taken from the span.
  void add_live_memory(const LiveMemoryPayload& fixed, std::span<const LiveMemoryRow> rows) noexcept;

  std::uint32_t step() const noexcept;
  void set_step(std::uint32_t step) noexcept;
  void count_optimizer_step() noexcept;
  std::uint32_t optimizer_steps() const noexcept;
  std::int32_t world_size() const noexcept;  // as far as it is known by now; -1 where it is not

 private:
  inline static constinit const EpochPage kNeverOpened{};
  static constexpr std::size_t kSeenSourceLines = 4096;
  static constexpr std::size_t kSeenSourceFiles = 1024;

  // The start of the mapped file when this process may write to it, null otherwise.
  std::byte* writable() const noexcept;
  std::byte* writable_by_owner() const noexcept;  // also tells a vfork child from its parent, at the price of a getpid
  std::byte* section(std::byte* base, SectionKind kind) const noexcept { return base + layout_[kind].offset; }

  OpenResult prepare(const RecorderSettings& settings) noexcept;
  bool make_indexes() noexcept;
  OpenResult start_file(std::byte* inherited) noexcept;
  OpenResult fail(OpenResult result, int error) noexcept;
  void complete_rank(JobPlace& place) noexcept;
  void write_header(std::byte* base, const ProcessInfo& info) const noexcept;
  void copy_tables(std::byte* to, std::byte* from) const noexcept;

  StringId append_string(std::byte* base, std::string_view text) noexcept;
  StringId append_operator(std::byte* base, StringId name) noexcept;
  ThreadRing* claim_ring(std::byte* base, std::uint32_t tid) noexcept;
  std::byte* begin_record(std::byte* base, std::size_t payload_size) noexcept;
  std::byte* begin_fact(std::byte* base, std::size_t payload_size, std::uint64_t share) noexcept;
  template <class Payload>
  void add_with_frames(RecordKind kind, const Payload& fixed, std::span<const FrameRecord> frames) noexcept;
  template <class Payload>
  bool add_record(std::byte* base, RecordKind kind, const Payload& payload) noexcept;
  template <class Payload>
  Payload* add_changing(RecordKind kind, const Payload& fixed, std::size_t mutable_bytes) noexcept;
  template <class Payload, class Fill>
  Payload* add_in_place(RecordKind kind, std::size_t mutable_bytes, Fill fill) noexcept;

  std::atomic<std::byte*> base_{nullptr};
  FileLayout layout_;
  ForkPage* page_ = nullptr;
  const EpochPage* epoch_page_ = &kNeverOpened;
  std::uint64_t generation_ = 0;  // of forks that record, from the process that opened the first file
  std::atomic<std::uint32_t> pid_{0};
  bool check_pid_ = false;  // the page is not wiped by the kernel
  std::atomic<bool> gave_up_{false};
  std::atomic<int> last_errno_{0};
  std::atomic<std::uint32_t> next_victim_{0};  // ring at which the search for one of a dead thread begins
  HashIndex strings_;
  HashIndex operators_;
  HashIndex sites_;
  HashIndex lineage_;
  std::atomic<std::uint64_t>* seen_source_lines_ = nullptr;  // kSeenSourceLines of file << 32 | line
  std::atomic<std::uint64_t>* seen_source_files_ = nullptr;  // kSeenSourceFiles of StringId
  std::atomic<std::uint64_t> source_bytes_{0};               // of texts that were added
  PathBuffer directory_{};
  PathBuffer path_{};
  RunIdentity run_{};
  std::atomic<std::int32_t> rank_{-1};  // of the process group, or of the environment
  std::atomic<std::int32_t> world_size_{-1};
  bool rank_was_given_ = false;  // by RANK
};
static_assert(std::is_trivially_destructible_v<Recorder>);

}  // namespace devsan::trace
