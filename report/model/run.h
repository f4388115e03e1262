// A run and its processes as plain data, and the report of it: what findings (finding.h) are part of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/model/collectives.h"
#include "report/model/finding.h"
#include "report/model/frame.h"
#include "report/model/host_clocks.h"
#include "trace/file_layout.h"
#include "trace/memory_layout.h"

namespace devsan::report {

std::string_view name_of(trace::CloseMark mark);
std::string_view name_of(trace::DeviceCallKind kind);
std::string_view name_of(trace::MemorySpace space);  // "" for none, as of a direction
std::string_view name_of(trace::CopyDirection direction);
std::string_view name_of(trace::PeakMoment moment);

// How often a process made one call of the device's driver or runtime, on one device and in one way.
struct DeviceCall {
  std::string call;  // "cudaMemcpyAsync"
  trace::DeviceCallKind kind = trace::DeviceCallKind::none;
  std::string device;  // empty where it is not known, or is the host
  trace::MemorySpace space = trace::MemorySpace::none;
  trace::CopyDirection direction = trace::CopyDirection::none;
  bool async = false;
  bool pageable = false;
  std::uint64_t count = 0;     // that succeeded
  std::uint64_t failed = 0;    // and that did not
  std::uint64_t captured = 0;  // that went into a graph instead
  std::uint64_t waits = 0;     // of `count`: after how many the host knew that the work before was done
  std::uint64_t bytes = 0;
  std::uint64_t wait_ns = 0;
};

// Memory that such calls have allocated.
struct DeviceMemory {
  std::string device;
  trace::MemorySpace space = trace::MemorySpace::none;
  std::uint64_t live = 0;  // bytes at the end
  std::uint64_t peak = 0;
  std::uint32_t peak_step = 0;
  std::uint64_t blocks = 0;     // that `live` is the sum of
  std::uint64_t untracked = 0;  // allocations that are not counted
};

struct LastDeviceCall {
  std::string call;
  std::string device;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t context = 0;
  std::uint64_t stream = 0;
  std::uint32_t result = 0;
  bool captured = false;
  bool waited = false;
  std::uint32_t thread = 0;
  std::uint32_t step = 0;
  std::int64_t time_ns = 0;
};

// What was in tensors of a device, or of the host, when most was.
struct PeakMemory {
  std::string device;                       // as of a MemoryCurve
  std::optional<std::uint64_t> peak;        // bytes that the allocator has had in tensors at most; none: not known
  std::uint32_t peak_step = 0;              // in which that was seen
  bool in_backward = false;                 // between the begin and the end of a backward of that step
  std::uint32_t step = 0;                   // of the look that the rest is of
  std::int64_t time_ns = 0;                 // the same
  trace::PeakMoment moment{};               // the same; none: the last census up to the peak of the curve
  std::uint64_t allocated = 0;              // in tensors, by PyTorch's count; 0: not known
  std::uint64_t reserved = 0;               // taken from the device
  std::uint64_t listed = 0;                 // in tensors that operators were seen to make
  std::vector<LiveMemory::Row> by_kind{};   // largest first
  std::vector<LiveMemory::Row> by_place{};  // and kind; the largest
};

// When iterations and their phases were. In this order: forward, backward, what lies between it and the optimizer, the
// optimizer, the rest up to the next iteration, and what of all this the thread has waited for a loader of data.
struct StepTimes {
  struct Step {
    std::uint32_t step = 0;
    std::int64_t begin_ns = 0;
    std::uint64_t forward_ns = 0;
    std::uint64_t backward_ns = 0;
    std::uint64_t between_ns = 0;
    std::uint64_t optimizer_ns = 0;
    std::uint64_t rest_ns = 0;
    std::uint64_t data_ns = 0;
  };
  std::uint64_t taken = 0;    // in the process's life, of which these are some
  bool data_is_told = false;  // whether waits for a loader were seen
  std::vector<Step> steps;    // oldest first, the longest among them; the last one may not have ended
};

// An exception that ended the program.
struct UncaughtException {
  std::string type;
  std::string message;
  bool message_is_arguments = false;  // "('lr', 3)": its class says it in a way of its own, which is not known
  std::optional<Frame> where;
  std::uint32_t step = 0;
  std::int64_t time_ns = 0;
};

struct Process {
  std::string file;  // of the trace
  std::uint32_t pid = 0;
  std::uint32_t parent_pid = 0;
  std::optional<int> rank;
  std::optional<int> local_rank;
  std::optional<int> world_size;
  std::optional<int> node;     // its number in the job, as the launcher says
  std::optional<int> attempt;  // how often the launcher had started the processes anew
  std::string run;             // the name of the one it belongs to; empty where its trace says none
  std::string host;
  std::string command;
  std::int64_t start_ns = 0;
  std::int64_t ended_ns = 0;        // 0: not known, as of a process that was killed
  std::int64_t first_error_ns = 0;  // when its first error was recorded; 0: it had none
  trace::CloseMark close = trace::CloseMark::open;
  std::optional<bool> ended;     // whether it is gone; none where that cannot be told from here
  std::optional<Ending> ending;  // none where nobody was told
  std::optional<UncaughtException> uncaught;
  std::optional<int> ended_after;  // a rank that had failed before, for which somebody ended this process
  std::uint32_t steps = 0;
  std::uint32_t optimizer_steps = 0;
  std::uint64_t operators = 0;
  std::uint64_t lost_events = 0;  // what the trace had no room for
  std::map<std::string, std::string> info;
  std::vector<Thread> threads;
  std::vector<MemoryCurve> memory;      // the host first
  std::vector<PeakMemory> peak_memory;  // the same
  StepTimes step_times;
  std::vector<DeviceCall> device_calls;
  std::vector<DeviceMemory> device_memory;
  std::uint64_t device_calls_made = 0;
  std::vector<LastDeviceCall> last_device_calls;  // newest first
  std::uint64_t collectives = 0;                  // that it entered
  std::vector<CollectiveCall> last_collectives;   // newest first
};

struct Notice {
  std::string text;
  std::uint32_t pid = 0;
  std::optional<int> rank;
  std::uint64_t count = 1;
};

// An entry of a file of suppressions that a process was given, and how often it applied.
struct SuppressionUse {
  std::string file;
  int line = 0;
  std::string text;
  std::string reason;
  std::uint64_t count = 0;
};

struct Run {
  std::string id;              // empty: the traces name none, or they are of several
  std::size_t other_runs = 0;  // whose traces lie in the same directories, and are not shown
  std::string command;
  std::vector<std::string> hosts;
  HostClocks clocks;          // as far as the collectives tell
  std::int64_t start_ns = 0;  // 0 when unknown
  std::int64_t last_ns = 0;   // of the last thing a trace tells the time of
  std::map<std::string, std::string> versions;
  std::vector<Process> processes;
  std::uint32_t steps = 0;
  std::uint32_t optimizer_steps = 0;
  std::vector<Notice> notices;
  std::vector<SuppressionUse> suppressions;   // in the order of their file
  std::optional<FirstFailure> first_failure;  // in the newest attempt
  std::vector<EarlierFailure> earlier_failures;
};

// Part of a trace, or all of it, that could not be used.
struct Damage {
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // 0 where unknown
  std::string reason;
};

struct Report {
  Run run;
  std::vector<Finding> findings;
  std::vector<Finding> suppressed;  // those with a Silence
  std::vector<Damage> damage;
};

}  // namespace devsan::report
