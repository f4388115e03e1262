#include "report/findings/build_endings.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <functional>
#include <iterator>

#include "report/findings/process_index.h"
#include "report/model/merge.h"
#include "trace/process_end.h"
#include "trace/run_info_keys.h"

namespace devsan::report {
namespace {

Ending ending_of(int wait_status) {
  Ending ending;
  if (WIFSIGNALED(wait_status)) ending.signal = WTERMSIG(wait_status);
  if (WIFEXITED(wait_status)) ending.status = WEXITSTATUS(wait_status);
  return ending;
}

// Signals that nobody sends to end a process in good order.
bool is_violent(int signal) {
  constexpr int kViolent[] = {SIGKILL, SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
  return std::ranges::find(kViolent, signal) != std::end(kViolent);
}

// A worker's status is its parent's affair, which often leaves by os._exit: what is told is how the run's own process
// ended. Where nobody was told, only a process that nobody could have stopped in good order counts.
std::optional<Severity> severity_of(const Process& process, const ProcessIndex& index) {
  if (process.ended_after) return std::nullopt;
  const bool alone = !index.has_parent(process);
  if (process.ending && process.ending->signal != 0) {
    if (process.close != trace::CloseMark::open || !is_violent(process.ending->signal)) return std::nullopt;
    return Severity::error;
  }
  if (process.ending) {
    const bool left = process.close == trace::CloseMark::quick_exited && process.ending->status.value_or(0) != 0;
    return left && alone ? std::optional(Severity::warning) : std::nullopt;
  }
  // What ended it is known where it raised: it did not come to its end any more.
  const bool gone = process.close == trace::CloseMark::open && process.ended.value_or(false) && !process.uncaught;
  return gone && alone && process.operators > 0 ? std::optional(Severity::warning) : std::nullopt;
}

// That with the newest operator first, as far as steps tell; of several, that with the most.
std::vector<Thread> threads_of(const Process& process) {
  std::vector<Thread> threads;
  std::ranges::copy_if(process.threads, std::back_inserter(threads), [](const Thread& t) { return !t.last.empty(); });
  const auto newness = [](const Thread& t) { return std::pair(t.last.front().step, t.operators); };
  std::ranges::stable_sort(threads, std::greater<>(), newness);
  return threads;
}

// Threads of a process group may hold tensors when the interpreter frees what they need, and then abort the process.
std::string hint_for(const Process& process, const Ending& ending) {
  const auto left = process.info.find(std::string(trace::kGroupsLeftKey));
  if (ending.signal != SIGABRT || left == process.info.end() || left->second == "0") return "";
  return "The program had come to its end, and " + left->second +
         (left->second == "1" ? " process group was" : " process groups were") +
         " still there: PyTorch's threads may abort the process when Python's interpreter ends before they do. Call "
         "`torch.distributed.destroy_process_group()` at the end of the program.";
}

Finding finding_of(const Process& process, Severity severity) {
  Finding finding;
  finding.kind = Kind::abnormal_exit;
  finding.severity = severity;
  finding.last_moments = {process.ending.value_or(Ending{}), threads_of(process), process.memory};
  finding.last_moments->ending.hint = hint_for(process, finding.last_moments->ending);
  set_process(finding, process.pid, process.rank);
  finding.step = process.steps > 0 ? process.steps - 1 : 0;
  if (!finding.last_moments->threads.empty()) {
    const Thread& thread = finding.last_moments->threads.front();
    const LastOperator& last = thread.last.front();
    finding.op = last.op;
    finding.thread = thread.tid;
    finding.thread_name = thread.name;
    // A line of the program is what its owner knows, even where a library's, such as an optimizer's, ran later.
    const std::optional<Frame>& own = thread.last_own;
    if (own || !last.at.file.empty()) finding.where = own ? *own : last.at;
    if (!last.at.file.empty()) finding.stack = {last.at};
  }
  finding.id = identity_of(finding);
  return finding;
}

}  // namespace

void ChildEnds::add(const trace::TraceFile& trace) {
  for (const trace::ChildEndPayload& end : trace.child_ends()) {
    ends_.push_back({trace.host(), end.pid, end.status, end.time_ns});
  }
}

// A pid comes again; an end is that of the process with it that began last before.
void ChildEnds::tell(std::vector<Process>& processes) const {
  const ProcessIndex index(processes);
  for (const End& end : ends_) {
    Process* found = nullptr;
    for (const std::size_t candidate : index.find(end.host, end.pid)) {
      Process& process = processes[candidate];
      if (process.start_ns > end.time_ns) continue;
      if (found == nullptr || process.start_ns > found->start_ns) found = &process;
    }
    if (found == nullptr) continue;
    if (!found->ending || found->ending->said_by_itself) found->ending = ending_of(end.status);
    if (found->ended_ns == 0) found->ended_ns = end.time_ns;
  }
  // One control group for the whole run: what the launcher counted is about all of its processes.
  std::optional<std::uint32_t> oom_kills;
  for (const Process& process : processes) {
    if (process.ending && process.ending->oom_kills) oom_kills = process.ending->oom_kills;
  }
  for (Process& process : processes) {
    if (process.ending && !process.ending->oom_kills) process.ending->oom_kills = oom_kills;
  }
}

void add_ending(const trace::TraceFile& trace, Process& process) {
  const trace::ToldEnd& told = trace.header().told_end;
  process.ended = trace::has_ended(trace.header());
  const bool by_itself = told.told_by == trace::kToldByItself && trace.header().close_mark != trace::CloseMark::open;
  if (told.told_by != trace::kToldByWaiter && !by_itself) return;
  process.ending = ending_of(told.status);
  process.ending->said_by_itself = by_itself;
  if ((told.oom_evidence & trace::kKillsCounted) != 0) process.ending->oom_kills = told.oom_kills;
  process.ending->named_by_kernel = (told.oom_evidence & trace::kNamedByKernel) != 0;
}

std::vector<Finding> build_endings(const std::vector<Process>& processes) {
  std::vector<Finding> findings;
  const ProcessIndex index(processes);
  for (const Process& process : processes) {
    const std::optional<Severity> severity = severity_of(process, index);
    if (severity) findings.push_back(finding_of(process, *severity));
  }
  return findings;
}

// glibc has sigabbrev_np only since 2.32.
std::string signal_name(int signal) {
  switch (signal) {
#define DEVSAN_SIGNAL(name) \
  case name:                \
    return #name;
#include "report/findings/signals.def"
#undef DEVSAN_SIGNAL
    default:
      return "signal " + std::to_string(signal);
  }
}

int signal_number(std::string_view name) {
#define DEVSAN_SIGNAL(signal) \
  if (name == #signal) return signal;
#include "report/findings/signals.def"
#undef DEVSAN_SIGNAL
  return 0;
}

std::string ending_text(const Finding& finding) {
  const Ending& ending = finding.last_moments->ending;
  const std::string who = finding.rank ? "rank " + std::to_string(*finding.rank) : "pid " + std::to_string(finding.pid);
  if (ending.signal == SIGKILL && ending.named_by_kernel) {
    return who + " was killed by the kernel for memory: the kernel's log names it";
  }
  if (ending.signal == SIGKILL && ending.oom_kills.value_or(0) > 0) {
    return who + " was killed by SIGKILL while the kernel killed " +
           (*ending.oom_kills == 1 ? "one process" : std::to_string(*ending.oom_kills) + " processes") +
           " of this run's control group for memory";
  }
  if (ending.signal != 0) return who + " was ended by " + signal_name(ending.signal);
  if (ending.status) return who + " left with status " + std::to_string(*ending.status) + " by os._exit or its like";
  return who + " did not exit by itself: it was killed, or it crashed";
}

}  // namespace devsan::report
