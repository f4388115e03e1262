// The bytes of a trace file. This header is the whole contract between a traced process and the reader: it knows
// neither torch nor CUDA nor Python. docs/trace-format.md documents the same layout for other readers.
//
// Rules for changes: a new record kind or a new section raises kMinorVersion; a changed or removed field raises
// kMajorVersion and adds a golden file under tests/golden/. Integers are little-endian.
//
// The file is one shared mapping of fixed size. Every section has room for a fixed number of entries; a counter in the
// header says how many are used. A writer fills an entry completely before it publishes it (counter or state, stored
// with release order), so a process killed at any instruction leaves only whole entries and, at most, unpublished ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace devsan::trace {

inline constexpr std::array<char, 8> kMagic = {'D', 'E', 'V', 'S', 'A', 'N', '\r', '\n'};
inline constexpr std::uint16_t kMajorVersion = 1;
inline constexpr std::uint16_t kMinorVersion = 4;

// Index of an entry in its section. 0 always means "none": the first entry of each section is left empty.
enum class StringId : std::uint32_t { none = 0 };    // byte offset of a length-prefixed string in the string section
enum class SiteId : std::uint32_t { none = 0 };      // index of a Site
enum class LineageId : std::uint32_t { none = 0 };   // index of a LineageNode
enum class OperatorId : std::uint16_t { none = 0 };  // index of an operator's name
enum class DeviceSlot : std::uint8_t { none = 0 };   // index into FileHeader::device_names

enum class SectionKind : std::uint32_t {
  strings = 1,    // u32 length, then the bytes (UTF-8, not terminated), padded to 4
  operators = 2,  // StringId per operator: "aten::mul_.Tensor"
  sites = 3,      // Site
  lineage = 4,    // LineageNode
  threads = 5,    // ThreadRing
  events = 6,     // RecordHeader and payload, one after the other
};

struct Section {
  SectionKind kind;
  std::uint32_t entry_size;  // bytes; 1 for strings and events
  std::uint64_t offset;      // from the start of the file
  std::uint64_t size;        // bytes
};
static_assert(sizeof(Section) == 24);

inline constexpr std::size_t kSectionCount = 6;
inline constexpr std::size_t kMaxDevices = 128;

// How the process ended, as far as the process itself could say. `open` in a dead process means that it was killed or
// crashed; a launcher that waited for it knows more. `halted`, `stopped`: by devsan, as the options `halt` and
// `stop_after` ask.
enum class CloseMark : std::uint32_t { open = 0, exited = 1, quick_exited = 2, executed = 3, halted = 4, stopped = 5 };

// What is known of the kernel's part in an end; bits.
enum OomEvidence : std::uint32_t {
  kKillsCounted = 1,   // ToldEnd::oom_kills is a count
  kNamedByKernel = 2,  // the kernel's log says that it killed this very process for memory
};

// Who has told how a process ended.
enum EndToldBy : std::uint32_t {
  kToldByNobody = 0,
  kToldByWaiter = 1,  // who waited for it, such as the launcher
  kToldByItself = 2,  // its call of exit() or _exit(); a signal may have come between that and its end
};

// How a process ended.
struct ToldEnd {
  std::uint32_t told_by;       // EndToldBy
  std::int32_t status;         // as waitpid gives it
  std::uint32_t oom_kills;     // processes of its control group that the kernel killed for memory while it ran
  std::uint32_t oom_evidence;  // OomEvidence
};
static_assert(sizeof(ToldEnd) == 16);

struct FileHeader {
  std::array<char, 8> magic;
  std::uint16_t major_version;
  std::uint16_t minor_version;
  std::uint32_t header_size;  // sizeof(FileHeader)
  std::uint64_t file_size;
  std::uint32_t pid;
  std::uint32_t parent_pid;
  std::int32_t rank;           // of trace/job_place.h; -1 where nothing said it at the start (Rank may tell it later)
  std::int32_t local_rank;     // -1: not said
  std::int32_t world_size;     // -1: not said
  CloseMark close_mark;        // written once, at exit
  std::int64_t start_time_ns;  // CLOCK_REALTIME
  std::uint64_t start_ticks;   // field 22 of /proc/self/stat: tells a process from a later one with its pid
  std::array<char, 64> host;   // nodename, zero-padded
  std::array<Section, kSectionCount> sections;

  // Counters, changed while the process runs. `*_used` counts entries (bytes for strings and events) that a reader may
  // look at; `*_lost` counts what found no room.
  std::uint64_t strings_used;
  std::uint64_t strings_lost;
  std::uint32_t operators_used;
  std::uint32_t sites_used;
  std::uint32_t sites_lost;
  std::uint32_t lineage_used;
  std::uint32_t lineage_lost;
  std::uint32_t threads_used;
  std::uint32_t threads_lost;
  std::uint32_t step;             // iteration, from 0: rises at the first forward operator after a backward
  std::uint32_t optimizer_steps;  // iterations in which a torch.optim optimizer ran
  std::uint32_t events_lost;
  std::uint64_t events_used;
  std::array<StringId, kMaxDevices> device_names;  // by DeviceSlot: "cuda:0"
  ToldEnd told_end;
  std::array<char, 64> run;        // which run the process belongs to, zero-padded; empty: not known
  std::uint64_t rendezvous;        // digest of what the launcher gave all processes of a distributed run; 0 without one
  std::int64_t end_time_ns;        // CLOCK_REALTIME, stored before the close mark; 0: not known
  std::uint32_t facts_lost;        // records Facts and SourceFile that found no room: they leave some to what follows
  std::uint32_t node_plus_one;     // the node's number in the job, and 1; 0: not said
  std::uint32_t attempt_plus_one;  // how often the launcher had started the processes anew, and 1; 0: not said
  std::array<std::byte, 3140> reserved;
};
static_assert(sizeof(FileHeader) == 4096);
static_assert(offsetof(FileHeader, major_version) == 8 && offsetof(FileHeader, pid) == 24);
static_assert(offsetof(FileHeader, sections) == 128 && offsetof(FileHeader, strings_used) == 272);
static_assert(offsetof(FileHeader, device_names) == 336 && offsetof(FileHeader, told_end) == 848);
static_assert(offsetof(FileHeader, run) == 864 && offsetof(FileHeader, end_time_ns) == 936);
static_assert(std::is_trivially_copyable_v<FileHeader>);

// A Python code position. Lines and columns count from 1 and from 0, as CPython counts them; 0 lines and -1 columns
// mean unknown. Columns are byte offsets into the UTF-8 source line.
struct Position {
  StringId file;
  StringId function;  // qualified name where the interpreter keeps one
  std::int32_t line;
  std::int32_t end_line;
  std::int32_t column;
  std::int32_t end_column;
};
static_assert(sizeof(Position) == 24);

// Where an operator was called from: the innermost frame outside torch, and the innermost of all (equal when the
// program called the operator itself).
struct Site {
  Position user;
  Position innermost;
};
static_assert(sizeof(Site) == 48);

enum class How : std::uint8_t {
  created = 1,  // a factory made the value on its device
  moved = 2,    // the value was copied there from another device
  derived = 3,  // computed from a value that was there already: `parent`
  called = 4,   // no step, but a call on the way to one: made at `site`, within the call `parent`
};

// One step in the history of a value's device. A node never changes; equal nodes are the same node, so a training loop
// comes back to the nodes of its first iteration. Chains are cut at kMaxLineageDepth: there `parent` is the origin.
//
// A step that brought the value to its device, or took a copy of it, knows the calls that led to it: `calls` is a
// `called` node, of the call of the function that the step's user line stands in; 0 where they are not known. Of those,
// the kMaxCalls innermost are kept.
struct LineageNode {
  LineageId parent;  // the operand that the device was taken from, as it was then; for `moved`, the value copied
  SiteId site;
  OperatorId op;
  DeviceSlot device;
  How how;
  std::uint32_t depth : 8;   // nodes between this one and its origin
  std::uint32_t calls : 24;  // a LineageId
};
static_assert(sizeof(LineageNode) == 16);
inline constexpr std::uint8_t kMaxLineageDepth = 24;
inline constexpr std::size_t kMaxCalls = 8;

// The last operators of one thread, newest at index (next - 1) % kRingEntries. One thread writes; any may read.
struct RingEntry {
  OperatorId op;
  DeviceSlot device;  // of the first operand; none without one
  std::uint8_t reserved;
  SiteId site;
  std::uint32_t step;
  std::uint32_t sequence;  // one more than that of the entry before: an entry half overwritten shows by it
};
static_assert(sizeof(RingEntry) == 16);

inline constexpr std::size_t kRingEntries = 252;

struct ThreadRing {
  std::uint32_t state;  // 0 free, 1 in use
  std::uint32_t tid;
  StringId name;
  std::uint32_t reserved;
  std::uint64_t next;  // operators recorded so far
  std::array<std::byte, 40> padding;
  std::array<RingEntry, kRingEntries> entries;
};
static_assert(sizeof(ThreadRing) == 4096);

// ---- the event section

enum class RecordKind : std::uint16_t {
  unfinished = 0,
#define DEVSAN_RECORD(name, number, text) name = number,
#include "trace/record_kinds.def"
#undef DEVSAN_RECORD
};

// Records start at multiples of 8. `size` is stored when the room is taken, `kind` last: a record whose kind is 0 was
// never finished and is skipped by its size; where the size itself is torn, a reader looks for the next kRecordSync.
struct RecordHeader {
  std::uint32_t sync;  // kRecordSync
  std::uint32_t size;  // bytes with this header, a multiple of 8
  RecordKind kind;
  std::uint16_t reserved;
  std::uint32_t checksum;  // CRC-32C of the payload from its fixed part on; see each payload for what it leaves out
};
static_assert(sizeof(RecordHeader) == 16);
inline constexpr std::uint32_t kRecordSync = 0x5e5aD0DE;

struct RunInfoPayload {
  StringId key;
  StringId value;
};
static_assert(sizeof(RunInfoPayload) == 8);

struct NoticePayload {
  StringId text;
  std::uint32_t reserved;
  std::int64_t time_ns;
};
static_assert(sizeof(NoticePayload) == 16);

struct SourceLinePayload {
  StringId file;
  std::int32_t line;
  StringId text;
  std::uint32_t reserved;
};
static_assert(sizeof(SourceLinePayload) == 16);

struct SuppressionPayload {
  StringId file;  // that it stands in
  std::int32_t line;
  StringId text;  // the entry as written, without its comment
  StringId reason;
};
static_assert(sizeof(SuppressionPayload) == 16);

// Written by a process that has waited for a child of its.
struct ChildEndPayload {
  std::uint32_t pid;
  std::int32_t status;  // as waitpid gives it
  std::int64_t time_ns;
};
static_assert(sizeof(ChildEndPayload) == 16);

// The process's place in the distributed run, where it is known only since its process group was made.
struct RankPayload {
  std::int32_t rank;
  std::int32_t world_size;
};
static_assert(sizeof(RankPayload) == 8);

enum class Phase : std::uint8_t { other = 0, forward = 1, backward = 2, optimizer = 3, data = 4, checkpoint = 5 };

enum MeetingFlags : std::uint32_t {
  kRaised = 1,        // PyTorch raised; `message` is what it said
  kHandled = 2,       // the program caught that exception; set later, in place
  kNoOperands = 4,    // the operator was called past the wrappers: only the message tells of its operands
  kAllowed = 8,       // made where the program allows such findings
  kExpected = 16,     // made where the program expects such a finding
  kOutOfMemory = 32,  // what PyTorch raised is that a device has no memory left
  kHostAccess = 64,   // no operands met: the host followed an address of the one operand's memory
};

// Followed by OperandRecord[operands], FrameRecord[frames] (innermost first), FrameRecord[forward_frames] (of the
// forward operator whose node failed in backward), NativeFrame[native_frames] (only where there is no Python, and with
// kHostAccess), EvidenceRecord[evidence].
// The fields before `time_ns` change in place after publication, and the checksum starts behind them.
struct MeetingPayload {
  std::uint32_t repeats;    // further times the same operator met the same devices at the same site
  std::uint32_t flags;      // MeetingFlags
  std::uint32_t last_step;  // step of the last repeat
  std::uint32_t reserved_in_place;
  std::int64_t time_ns;  // CLOCK_REALTIME
  StringId message;
  SiteId site;
  OperatorId op;
  Phase phase;
  std::uint8_t evidence;
  std::uint32_t step;
  std::uint32_t tid;
  StringId thread_name;
  std::uint16_t operands;
  std::uint16_t frames;
  std::uint16_t forward_frames;
  std::uint16_t native_frames;
};
static_assert(sizeof(MeetingPayload) == 56);
static_assert(offsetof(MeetingPayload, time_ns) == 16);
inline constexpr std::size_t kMeetingMutableBytes = offsetof(MeetingPayload, time_ns);

enum class TrafficKind : std::uint8_t {
  none = 0,
#define DEVSAN_TRAFFIC(name, number, text) name = number,
#include "trace/traffic_kinds.def"
#undef DEVSAN_TRAFFIC
};

// What was done with memory that an asynchronous copy was at work on.
enum class RaceKind : std::uint8_t {
  none = 0,
  host_read_target = 1,
  host_wrote_target = 2,
  host_wrote_source = 3,
  stream_used_target = 4,  // another stream than the copy's
  stream_wrote_source = 5,
  numpy_read_target = 6,  // through NumPy, DLPack or an address
};

enum TrafficFlags : std::uint8_t {
  kForeignPlace = 1,      // torch or a library called the operator, not code of the program's own
  kForeignCause = 2,      // the same for the copy that a race is about
  kToHost = 4,            // a copy from a device to the host; without it, from the host to a device
  kTrafficAllowed = 8,    // the program allows such findings here
  kTrafficExpected = 16,  // or expects them
};

// Counted in place per site, operator and kind. Followed by OperandRecord[operands] and FrameRecord[frames], innermost
// first. The fields before `time_ns` change after publication, and the checksum starts behind them.
struct TrafficPayload {
  std::uint64_t bytes;      // of all times together; 0 where nothing was copied
  std::uint32_t repeats;    // further times
  std::uint32_t steps;      // in which it happened
  std::uint32_t last_step;  // in which it happened
  OperatorId taker;         // the operator that took the number which the host waited for; none where nobody saw one
  std::uint16_t settled;    // of reads outside PyTorch: how many were followed by a wait for the copy; stops at 65,535
  std::int64_t time_ns;     // CLOCK_REALTIME
  SiteId site;
  SiteId cause;  // where the copy of a race was asked for; where else a pageable copy's data was pinned, or its loader
                 // made; the loop, or other line, that takes the number of a wait out of a tensor
  OperatorId op;
  TrafficKind kind;
  RaceKind race;
  Phase phase;
  std::uint8_t flags;  // TrafficFlags
  std::uint16_t reserved;
  std::uint32_t step;
  std::uint32_t tid;
  StringId thread_name;
  std::uint16_t operands;
  std::uint16_t frames;
};
static_assert(sizeof(TrafficPayload) == 64);
static_assert(offsetof(TrafficPayload, time_ns) == 24);
inline constexpr std::size_t kTrafficMutableBytes = offsetof(TrafficPayload, time_ns);

enum class NameKind : std::uint8_t {
  unknown = 0,
  parameter = 1,
  buffer = 2,
  attribute = 3,
  local = 4,
  temporary = 5,
};

enum OperandFlags : std::uint8_t {
  kGenerator = 1,      // a torch.Generator: no shape, no dtype
  kWrappedNumber = 2,  // a Python number that PyTorch made a 0-dim CPU tensor of
  kRequiresGrad = 4,
  kPinned = 8,
  kDeviceArgument = 16,  // the `device=` argument of a factory: no shape, no dtype
  kAtHome = 32,          // it is on the accelerator that the failing function is told to work on, or given all else on
  kUnseen = 64,          // a tensor of which the process knows neither shape nor dtype
};

inline constexpr std::size_t kMaxShownDims = 8;

struct OperandRecord {
  StringId argument;  // "self", "tensors[1]": the schema's name for it
  StringId name;      // what the program calls it: "self.bias", "layers.3.weight"; none where it was not found
  StringId dtype;     // "float32"
  LineageId lineage;  // none where its history is not known
  DeviceSlot device;
  NameKind name_kind;
  std::uint8_t flags;  // OperandFlags
  std::uint8_t dims;   // may exceed kMaxShownDims
  std::uint32_t reserved;
  std::uint64_t storage_bytes;
  std::array<std::int64_t, kMaxShownDims> sizes;
};
static_assert(sizeof(OperandRecord) == 96);

enum FrameFlags : std::uint32_t {
  kTorchFrame = 1,    // code of torch itself, or of the standard library
  kLibraryFrame = 2,  // code under site-packages
};

struct FrameRecord {
  Position position;
  std::uint32_t flags;  // FrameFlags
  std::uint32_t reserved;
};
static_assert(sizeof(FrameRecord) == 32);

enum class EvidenceKind : std::uint8_t {
  none = 0,
#define DEVSAN_EVIDENCE(enumerator, number, name, text) enumerator = number,
#include "trace/evidence_kinds.def"
#undef DEVSAN_EVIDENCE
};

inline constexpr std::uint8_t kWholeFinding = 255;

// Something that the process found out about an operand: what it says is told by its kind.
struct EvidenceRecord {
  Position at;    // file none: no position belongs to it
  StringId text;  // see the kind
  EvidenceKind kind;
  std::uint8_t operand;  // index of the operand it is about; kWholeFinding
  std::uint16_t reserved;
};
static_assert(sizeof(EvidenceRecord) == 32);

struct NativeFrame {
  StringId module;
  StringId symbol;       // none where the dynamic symbol table has none
  std::uint64_t offset;  // into the symbol, or into the module without one
};
static_assert(sizeof(NativeFrame) == 16);

}  // namespace devsan::trace
