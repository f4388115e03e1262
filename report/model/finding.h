// The verdict as plain data, as docs/report-schema.md describes it. Whoever fills these structs decides; whoever
// renders them only formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/model/collectives.h"
#include "report/model/frame.h"
#include "trace/finding_kind.h"
#include "trace/memory_layout.h"

namespace devsan::report {

using trace::Severity;
using Kind = trace::FindingKind;

std::string_view name_of(Severity severity);
std::string_view name_of(Kind kind);
std::string_view meaning_of(Kind kind);
Severity default_severity(Kind kind);
std::string_view name_of(trace::Phase phase);
std::string_view name_of(trace::How how);
std::string_view name_of(trace::NameKind kind);
std::string_view name_of(trace::LiveKind kind);
std::string_view name_of(trace::SeriesClock clock);
// What one of its steps is called: "step", "round".
std::string_view step_of(trace::SeriesClock clock);

struct NativeFrame {
  std::string module;
  std::string symbol;
  std::uint64_t offset = 0;
};

// One step in the history of an operand's device.
struct LineageStep {
  Frame at;
  std::string op;
  trace::How how = trace::How::derived;
  std::string device;
  Frame innermost;             // the innermost of all: differs from `at` where torch's own Python called the operator
  std::vector<Frame> calls{};  // that led there, from that of the function around `at` outwards; empty where not known
  // Where a library did it for the program, which called that at `at`: its lines, innermost first. Else empty.
  std::vector<Frame> within{};
};

struct Operand {
  std::string arg;     // the schema's name
  std::string name;    // the program's; empty when it was not found
  std::string text;    // how it is written in the call that failed; empty where that is not known
  bool spoken = true;  // the name means the same in the line that failed; names of torch's own variables may not
  std::string device;
  std::optional<std::vector<std::int64_t>> shape;  // none for a generator or a `device=` argument
  std::size_t hidden_dims = 0;                     // dimensions that the trace had no room for
  std::string dtype;
  bool odd = false;
  bool generator = false;
  bool device_argument = false;
  bool number = false;  // a Python number that PyTorch made a tensor of
  trace::NameKind is = trace::NameKind::unknown;
  std::vector<LineageStep> lineage;  // newest first, ending at the origin

  bool is_scalar() const { return shape && shape->empty(); }
  bool on_cpu() const { return device == "cpu"; }
};

// Of a cause that is one of several that the source leaves open.
enum class Confidence : std::uint8_t { likely, possible };
std::string_view name_of(Confidence confidence);

// A change of one file as a unified diff: `patch FILE` applies it, and the result parses.
struct FileDiff {
  std::string file;
  std::string diff;
};

struct Fix {
  std::string file;
  int line = 0;
  std::string text;
  std::vector<FileDiff> patches{};  // empty where the change is told in words alone
};

struct RootCause {
  std::string file;
  int line = 0;
  std::string function;
  std::string operand;  // its name, or its argument's
  std::string why;
  std::string source{};                    // the line's text; empty where the report has it from a frame
  std::string mechanism{};                 // a page of docs/causes; empty of what PyTorch lets pass
  std::optional<Confidence> confidence{};  // none where the run itself shows the cause
  std::optional<Fix> fix{};                // of an alternative; that of the cause itself is Finding::fix
};

// Why a finding is not shown among the others.
struct Silence {
  enum class By { suppression, allowed, expected };
  By by = By::suppression;
  std::string file;    // of the suppression
  int line = 0;        //
  std::string text;    //
  std::string reason;  //
};

std::string_view name_of(Silence::By by);

// What is known of traffic between the host and devices, beside operands and places.
struct Traffic {
  // The `taker` of a number that Python itself takes for an index or a length.
  static constexpr std::string_view kPythonIndex = "Tensor.__index__";

  trace::RaceKind race = trace::RaceKind::none;
  // Of a race: where the copy was asked for. Of a copy from pageable memory: where it was copied into pinned memory;
  // with `from_loader`, where the DataLoader was made. Of a number: the loop that takes it out of a tensor.
  std::optional<Frame> copy;
  std::string taker;         // the operator that took the number which the host waited for
  bool to_host = false;      // the copy's direction
  bool from_loader = false;  // a DataLoader made what was copied
  std::uint64_t bytes = 0;   // of all times together
  double per_step = 0;       // times a step, from the first one to the end of the run
  std::uint32_t last_step = 0;
  bool each_step = false;  // from the finding's step to the last one
};

// Memory of a device that code on the host followed a pointer to.
struct HostAccess {
  bool writes = false;
  std::optional<std::uint64_t> byte;   // of the tensor's storage; none where the memory belongs to none
  std::optional<std::uint64_t> bytes;  // that the storage has
};

struct LastOperator {
  std::string op;
  Frame at;
  std::uint32_t step = 0;
};

struct Thread {
  std::uint32_t tid = 0;
  std::string name;
  std::uint64_t operators = 0;
  std::vector<LastOperator> last;   // newest first
  std::optional<Frame> last_own{};  // the newest line outside installed code that ran an operator
};

// Memory at one moment. What `used` and `held` are: see MemoryCurve.
struct MemoryPoint {
  std::uint32_t step = 0;
  std::uint64_t used = 0;
  std::uint64_t held = 0;
  std::int64_t time_ns = 0;
};

// Of a device, bytes in tensors, and those that PyTorch has taken from it. Of the host, the process's own memory, and
// how much host memory it has pinned.
struct MemoryCurve {
  std::string device;               // empty: the host
  std::vector<MemoryPoint> points;  // oldest first, at least one; the last one is the latest that is known
  MemoryPoint peak;                 // with the most in use
  trace::SeriesClock clock = trace::SeriesClock::iterations;  // what counts the points' steps
};

// How a process ended, as whoever waited for it was told, and what it did last.
struct Ending {
  int signal = 0;  // that ended it; 0: none did, or it is not known
  std::optional<int> status;
  std::optional<std::uint32_t> oom_kills;  // by the kernel, in the run's control group; none: not counted
  bool named_by_kernel = false;            // its log says that it killed this process for memory
  bool said_by_itself = false;             // the status is the one that it gave to exit(); nobody waited for it
  std::string hint{};                      // what would keep the process from ending so; empty where nothing is known
};

// Of the process that a finding about its end is about.
struct LastMoments {
  Ending ending;
  std::vector<Thread> threads;  // those that ran operators, the last one first
  std::vector<MemoryCurve> memory;
};

// Memory that becomes more from step to step.
struct Growth {
  // Tensors of one operator and line that grow.
  struct Part {
    Frame at;
    std::string op;
    double bytes_per_step = 0;
    double tensors_per_step = 0;
    std::uint64_t bytes = 0;  // at last
  };
  std::string device;           // empty: the host
  std::string holder;           // "losses[...]": empty where it was not found, or there are no tensors
  bool graph = false;           // what is held has an autograd graph, which holds the other parts
  std::optional<Frame> sum_at;  // the holder is one tensor, made here, whose graph holds all parts
  bool bounded = false;         // the holder drops its oldest entries when it is full
  trace::SeriesClock clock = trace::SeriesClock::iterations;  // what counts the steps of this
  bool seldom = false;  // tensors were looked at too few times to tell which of them account for it
  std::uint32_t since = 0;
  double bytes_per_step = 0;                // of all parts
  double records_per_step = 0;              // bytes that the host gains by its records of the parts; 0: not known
  std::uint64_t bytes = 0;                  // at last
  std::optional<std::uint64_t> steps_left;  // until the device, or the host, is full
  std::vector<Part> parts;                  // the one that `where` is first; empty: no tensors account for it

  // Of the memory of `device`: the records are the host's.
  double all_per_step() const { return bytes_per_step + (device.empty() ? records_per_step : 0); }
};

// What was live when a device had no memory left.
struct LiveMemory {
  struct Row {
    trace::LiveKind kind = trace::LiveKind::other;
    std::string module;
    Frame at;
    std::string op;
    std::uint64_t bytes = 0;
    std::uint64_t tensors = 0;
  };
  std::string device;                     // empty where nothing was recorded
  std::optional<std::uint64_t> asked;     // bytes, as PyTorch's message tells; as the two below
  std::optional<std::uint64_t> capacity;  // of the device
  std::optional<std::uint64_t> free;      // of it, taken by nobody
  std::uint64_t allocated = 0;            // in tensors, by PyTorch's count; 0 in both: not known
  std::uint64_t reserved = 0;             // taken from the device
  std::uint64_t listed = 0;               // in the rows
  std::optional<std::uint32_t> peak_step;
  std::vector<Row> by_kind;    // largest first
  std::vector<Row> by_module;  // without what belongs to none
  std::vector<Row> by_place;   // and kind
};

// What sets the ranks that had a finding apart from those that ran as far and had it not.
struct Difference {
  std::string what;   // "device of `self.bias`"
  std::string here;   // of the ranks that had it: "cpu"
  std::string there;  // of the others
};

// Ranks that came to the step of a finding and ended in it without: whether they would have had it is not known.
struct EndedRanks {
  std::vector<int> ranks;  // ascending
  std::string what;        // "was ended by SIGTERM after rank 3 had failed"
};

// What a finding breaks: a rule, or what devsan expects without one.
struct Expectation {
  std::string rule;      // its name
  std::string sentence;  // what it says
  std::string file;      // of the rule; empty: built in
  int line = 0;
  std::string expected;  // "cuda:1"
  std::string found;     // "cpu pinned"
  std::uint64_t tensors = 0;
  std::vector<std::string> names{};  // of some of them

  bool name_differs() const { return rule != sentence && !rule.empty(); }
};

// Who wrote an attribute of a module.
struct Writer {
  Frame frame;
  std::string when;   // "first", "last"
  std::string value;  // that was written: a number or a device
};

// An attribute that a library has overwritten.
struct Overwriting {
  std::string type;  // the module's class
  std::string name;
  std::vector<Writer> writers{};  // the last one is the library
};

struct Finding {
  std::string id;  // the same for findings that are equal, in any process and any run
  Kind kind = Kind::device_mismatch;
  Severity severity = Severity::error;
  bool raised = false;
  bool handled = false;  // the program caught the exception
  std::string message;   // PyTorch's own
  std::string op;
  std::optional<Frame> where;
  std::vector<Frame> stack;                   // innermost first
  std::optional<std::vector<Frame>> forward;  // the forward operator's stack, where the failure is in backward
  std::vector<NativeFrame> native_stack;
  std::vector<Operand> operands;
  std::optional<HostAccess> host_access;      // only of host-dereference
  std::optional<Traffic> traffic;             // only for kinds that are about it
  std::optional<LastMoments> last_moments;    // only of abnormal-exit
  std::optional<Growth> growth;               // only of memory-growth
  std::optional<LiveMemory> live;             // only of out-of-memory
  std::optional<CollectiveStory> collective;  // only of kinds that are about one
  std::optional<Expectation> expectation;     // of wrong-placement, and of traffic that a rule forbids
  std::optional<Overwriting> overwriting;     // of attribute-overwritten, and of a placement that may follow from it
  std::optional<RootCause> root_cause;
  std::vector<RootCause> alternatives;  // where else the change could stand, the best first
  std::optional<Fix> fix;
  std::uint32_t step = 0;
  trace::Phase phase = trace::Phase::other;
  std::optional<int> rank;
  std::string own_device;        // "cuda:2" of local rank 2; empty in a job of one process
  std::vector<int> ranks;        // every rank that had it, ascending
  std::vector<int> other_ranks;  // that ran as far and had it not, ascending
  std::vector<EndedRanks> ended_ranks;
  std::vector<Difference> differs;
  std::uint32_t pid = 0;
  std::uint32_t thread = 0;
  std::string thread_name;
  std::uint64_t count = 1;
  std::int64_t time_ns = 0;
  std::optional<Silence> silence;
};

void set_process(Finding& finding, std::uint32_t pid, std::optional<int> rank);

}  // namespace devsan::report
