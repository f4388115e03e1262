#include "report/findings/build_run.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "report/findings/build_device_calls.h"
#include "report/findings/build_endings.h"
#include "report/findings/build_memory.h"
#include "report/findings/build_steps.h"
#include "report/findings/collective_logs.h"
#include "report/findings/process_index.h"
#include "report/model/frames.h"
#include "trace/code_paths.h"

namespace devsan::report {
namespace {

constexpr std::array<std::string_view, 4> kVersionKeys = {"devsan", "torch", "python", "cuda"};
constexpr std::string_view kCommandKey = "command";
constexpr std::size_t kLastCollectives = 16;

Thread thread_of(const trace::TraceFile& trace, const trace::ThreadTail& tail) {
  Thread thread{tail.tid, tail.name, tail.operators, {}};
  for (const trace::RingEntry& entry : tail.last) {
    if (thread.last.size() == kLastOperators) break;
    LastOperator& last = thread.last.emplace_back();
    last.op = trace.operator_name(entry.op);
    if (auto frame = user_frame_of(trace, entry.site)) last.at = std::move(*frame);
    last.step = entry.step;
  }
  const auto own = std::ranges::find_if(tail.last, [&](const trace::RingEntry& entry) {
    const auto site = trace.site(entry.site);
    const std::string_view file = site ? trace.string(site->user.file) : std::string_view();
    return !file.empty() && !trace::is_library_path(file);
  });
  if (own != tail.last.end()) thread.last_own = user_frame_of(trace, own->site);
  return thread;
}

// The process that the others come from: its parent has no trace here. Of several, the earliest.
const Process* root_of(const std::vector<Process>& processes) {
  const ProcessIndex index(processes);
  const Process* root = nullptr;
  for (const Process& process : processes) {
    if (index.has_parent(process) && root != nullptr) continue;
    if (root == nullptr || process.start_ns < root->start_ns) root = &process;
  }
  return root;
}

}  // namespace

std::optional<UncaughtException> uncaught_of(const trace::TraceFile& trace) {
  if (trace.failures().empty()) return std::nullopt;
  const trace::Failure& failure = trace.failures().back();
  UncaughtException uncaught;
  uncaught.type = trace.string(failure.fixed.type);
  uncaught.message = trace.string(failure.fixed.message);
  uncaught.message_is_arguments = (failure.fixed.flags & trace::kMessageIsArguments) != 0;
  uncaught.step = failure.fixed.step;
  uncaught.time_ns = failure.fixed.time_ns;
  const std::vector<Frame> frames = frames_of(trace, failure.frames);
  const auto own = std::ranges::find_if(frames, [](const Frame& frame) { return !frame.torch; });
  if (own != frames.end()) uncaught.where = *own;
  return uncaught;
}

Process process_of(const trace::TraceFile& trace) {
  const trace::FileHeader& header = trace.header();
  Process process;
  process.file = trace.path().string();
  process.pid = header.pid;
  process.parent_pid = header.parent_pid;
  process.rank = trace.rank();
  process.local_rank = trace.local_rank();
  process.world_size = trace.world_size();
  process.node = trace.node();
  process.attempt = trace.attempt();
  process.run = trace.run();
  process.host = trace.host();
  process.start_ns = header.start_time_ns;
  process.ended_ns = header.end_time_ns;
  process.close = header.close_mark;
  process.collectives = trace.collectives().entered;
  process.last_collectives = last_collectives_of(trace, kLastCollectives);
  process.optimizer_steps = header.optimizer_steps;
  process.lost_events = trace.lost_events();
  for (const auto& [key, value] : trace.run_info()) {
    if (key == kCommandKey) {
      process.command = value;
    } else {
      process.info[key] = value;
    }
  }
  for (const trace::ThreadTail& tail : trace.threads()) {
    process.operators += tail.operators;
    process.threads.push_back(thread_of(trace, tail));
  }
  add_ending(trace, process);
  process.uncaught = uncaught_of(trace);
  add_memory(trace, process);
  add_step_times(trace, process);
  add_device_calls(trace, process);
  // The step counts from 0, and a process that never ran an operator is in no step at all.
  process.steps = process.operators == 0 && header.step == 0 ? 0 : header.step + 1;
  return process;
}

void summarize_processes(Run& run) {
  if (const Process* root = root_of(run.processes)) {
    run.command = root->command;
    run.id = root->run;
  }
  std::unordered_set<std::string> hosts;
  for (const Process& process : run.processes) {
    if (!process.host.empty() && hosts.insert(process.host).second) run.hosts.push_back(process.host);
    if (process.start_ns > 0) {
      run.start_ns = run.start_ns == 0 ? process.start_ns : std::min(run.start_ns, process.start_ns);
      run.last_ns = std::max({run.last_ns, process.start_ns, process.ended_ns});
    }
    run.steps = std::max(run.steps, process.steps);
    run.optimizer_steps = std::max(run.optimizer_steps, process.optimizer_steps);
    for (const std::string_view key : kVersionKeys) {
      const auto version = process.info.find(std::string(key));
      if (version != process.info.end()) run.versions.emplace(key, version->second);
    }
  }
}

}  // namespace devsan::report
