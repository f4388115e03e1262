#include "report/render/render_perfetto.h"

#include <algorithm>
#include <limits>

#include "report/model/frames.h"
#include "report/render/headline.h"
#include "report/render/perfetto_collectives.h"
#include "report/render/perfetto_events.h"

namespace devsan::report {
namespace {

// Threads of the kernel have no such numbers.
constexpr std::uint64_t kStepTrack = 2'000'000'001;
constexpr std::uint64_t kCallTrack = 2'000'000'002;
constexpr std::uint64_t kPhaseTrack = 2'000'000'003;
constexpr std::int64_t kWidestOperator = 10'000;  // nanoseconds
constexpr std::int64_t kUnplaced = 1'000'000;     // room for operators of a step whose end is not known

std::string track_name(const Process& process, bool several_hosts) {
  std::string name = process.rank ? "rank " + std::to_string(*process.rank) : "process";
  name += " · pid " + std::to_string(process.pid);
  return several_hosts && !process.host.empty() ? name + " · " + process.host : name;
}

std::string place_of_frame(const Frame& frame) {
  return frame.file.empty() ? "" : frame.file + ":" + std::to_string(frame.line);
}

struct Window {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

std::int64_t end_of(const StepTimes::Step& step) {
  return step.begin_ns + static_cast<std::int64_t>(step.forward_ns + step.backward_ns + step.between_ns +
                                                   step.optimizer_ns + step.rest_ns + step.data_ns);
}

// What is known last of a process.
std::int64_t end_of(const Process& process) {
  const auto& steps = process.step_times.steps;
  return std::max(process.ended_ns, steps.empty() ? process.start_ns : end_of(steps.back()));
}

// When a step was; of one that the trace has no time of, the time between those that it has.
Window window_of(const Process& process, std::uint32_t step) {
  const auto& steps = process.step_times.steps;
  const auto after = std::ranges::upper_bound(steps, step, {}, &StepTimes::Step::step);
  Window window{process.start_ns, after != steps.end() ? after->begin_ns : end_of(process)};
  if (after != steps.begin()) {
    const StepTimes::Step& before = *std::prev(after);
    window.begin_ns = before.step == step ? before.begin_ns : end_of(before);
    if (before.step == step && after != steps.end()) window.end_ns = end_of(before);
  }
  if (window.end_ns <= window.begin_ns) window.end_ns = window.begin_ns + kUnplaced;
  return window;
}

class PerfettoRenderer {
 public:
  explicit PerfettoRenderer(const Report& report) : report_(report), events_(report.run) {}

  std::string render() {
    for (std::size_t i = 0; i < report_.run.processes.size(); ++i) add_process(i);
    add_collectives(report_.run, events_);
    for (const Finding& finding : report_.findings) add_finding(finding);
    Json about = {{"tool", "devsan"},
                  {"run", text_or_null(report_.run.id)},
                  {"command", text_or_null(report_.run.command)},
                  {"origin", text_or_null(iso_time(events_.origin_ns()))},
                  {"operators", "The order and the step of operators are as recorded; their times are not known."}};
    return events_.take(about);
  }

 private:
  void add_process(std::size_t index) {
    const Process& process = report_.run.processes[index];
    const std::int64_t order = process.rank ? *process.rank : -1;
    events_.name_process(index, track_name(process, report_.run.hosts.size() > 1), order);
    add_steps(index, process.step_times);
    for (std::size_t i = 0; i < process.threads.size(); ++i) {
      add_operators({index, process.threads[i].tid}, process.threads[i], static_cast<int>(i) + 3, process);
    }
    add_memory_counters(index, process);
    add_calls(index, process);
  }

  void add_steps(std::size_t index, const StepTimes& times) {
    if (times.steps.empty()) return;
    events_.name_thread({index, kStepTrack}, "steps", 1);
    events_.name_thread({index, kPhaseTrack}, "phases", 2);
    for (auto step = times.steps.begin(); step != times.steps.end(); ++step) {
      // Begin and length are of two clocks.
      const auto next = std::next(step);
      const std::int64_t end = next != times.steps.end() ? std::min(end_of(*step), next->begin_ns) : end_of(*step);
      events_.slice({index, kStepTrack}, "step " + std::to_string(step->step), step->begin_ns, end,
                    {{"step", step->step}});
      add_phases({index, kPhaseTrack}, *step, end);
    }
  }

  void add_phases(Track track, const StepTimes::Step& step, std::int64_t end_ns) {
    std::int64_t begin = step.begin_ns;
    const auto add = [&](const char* name, std::uint64_t length_ns) {
      const std::int64_t end = std::min(begin + static_cast<std::int64_t>(length_ns), end_ns);
      if (end > begin) events_.slice(track, name, begin, end, {{"step", step.step}});
      begin = std::max(begin, end);
    };
    add("forward", step.forward_ns);
    add("backward", step.backward_ns);
    add("rest", step.between_ns);
    add("optimizer", step.optimizer_ns);
    add("rest", step.rest_ns);
    add("data", step.data_ns);
  }

  void add_operators(Track track, const Thread& thread, int order, const Process& process) {
    const std::string name = thread.name.empty() ? "thread " + std::to_string(thread.tid) : thread.name;
    events_.name_thread(track, name, order);
    std::int64_t limit = std::numeric_limits<std::int64_t>::max();
    for (auto newest = thread.last.begin(); newest != thread.last.end();) {
      const std::uint32_t step = newest->step;
      const auto older =
          std::find_if(newest, thread.last.end(), [&](const LastOperator& op) { return op.step != step; });
      const auto count = std::distance(newest, older);
      const Window window = window_of(process, step);
      const std::int64_t width =
          std::clamp<std::int64_t>((window.end_ns - window.begin_ns) / count, 1, kWidestOperator);
      std::int64_t end = std::min(window.end_ns, limit);
      for (; newest != older; ++newest, end -= width) {
        events_.slice(track, newest->op, end - width, end,
                      {{"step", step},
                       {"at", text_or_null(place_of_frame(newest->at))},
                       {"function", text_or_null(newest->at.function)}});
      }
      limit = end;
    }
  }

  void add_memory_counters(std::size_t index, const Process& process) {
    for (const MemoryCurve& curve : process.memory) {
      const std::string name = (curve.device.empty() ? std::string("host") : curve.device) + " memory";
      for (const MemoryPoint& point : curve.points) {
        events_.counter(index, name, point.time_ns, {{"used", point.used}, {"held", point.held}});
      }
    }
  }

  void add_calls(std::size_t index, const Process& process) {
    if (process.last_device_calls.empty()) return;
    const Track track{index, kCallTrack};
    events_.name_thread(track, "CUDA calls", 1000);
    for (auto call = process.last_device_calls.rbegin(); call != process.last_device_calls.rend(); ++call) {
      events_.mark(track, call->call, "cuda", call->time_ns,
                   {{"device", text_or_null(call->device)},
                    {"bytes", call->bytes},
                    {"stream", call->stream},
                    {"thread", call->thread},
                    {"step", call->step}});
    }
  }

  // A pid comes again: of several with it, that which began last before the finding.
  const Process* process_of(const Finding& finding) const {
    const Process* found = nullptr;
    for (const Process& one : report_.run.processes) {
      if (one.pid != finding.pid || one.rank != finding.rank) continue;
      const bool had_begun = finding.time_ns <= 0 || one.start_ns <= finding.time_ns;
      if (found == nullptr || (had_begun && one.start_ns > found->start_ns)) found = &one;
    }
    return found;
  }

  void add_finding(const Finding& finding) {
    const Process* const process = process_of(finding);
    if (process == nullptr) return;
    const auto index = static_cast<std::size_t>(process - report_.run.processes.data());
    const std::int64_t time = finding.time_ns > 0 ? finding.time_ns : end_of(*process);
    Json args = {{"id", finding.id}, {"severity", name_of(finding.severity)}, {"what", headline(finding)}};
    if (finding.where) args["at"] = place_of_frame(*finding.where);
    if (finding.root_cause) args["cause"] = finding.root_cause->file + ":" + std::to_string(finding.root_cause->line);
    if (finding.fix) args["change"] = finding.fix->text;
    args["ranks"] = finding.ranks;
    args["count"] = finding.count;
    args["step"] = finding.step;
    events_.mark({index, finding.thread}, std::string(name_of(finding.kind)), "finding", time, std::move(args));
  }

  const Report& report_;
  PerfettoEvents events_;
};

}  // namespace

std::string render_perfetto(const Report& report) {
  return PerfettoRenderer(report).render();
}

}  // namespace devsan::report
