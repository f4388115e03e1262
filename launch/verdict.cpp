#include "launch/verdict.h"

#include <algorithm>

#include "launch/run.h"
#include "report/text/words.h"
#include "trace/not_simulated.h"

namespace devsan::launch {
namespace {

using report::counted;
using report::Finding;
using report::Kind;
using report::Process;
using report::Severity;

bool is_unhandled(const Finding& finding) {
  return finding.severity != Severity::note && !finding.handled;
}

// Real devices would have had the memory, or a real host.
bool is_lack_of_memory_here(const Finding& finding, const Rehearsal& rehearsal) {
  if (finding.kind == Kind::out_of_memory) return rehearsal.memory_is_hosts;
  if (finding.kind != Kind::abnormal_exit || !finding.last_moments) return false;
  const report::Ending& ending = finding.last_moments->ending;
  return ending.named_by_kernel || ending.oom_kills.value_or(0) > 0;
}

std::vector<std::string> not_covered(const report::Report& report) {
  std::vector<std::string> found;
  for (const report::Notice& notice : report.run.notices) {
    if (!notice.text.starts_with(trace::kNotSimulated)) continue;
    std::string what = notice.text.substr(trace::kNotSimulated.size());
    if (std::ranges::find(found, what) == found.end()) found.push_back(std::move(what));
  }
  return found;
}

// Each once, however many tensors, lines and ranks break it.
std::vector<std::string> broken_rules(const report::Report& report) {
  std::vector<std::string> found;
  for (const Finding& finding : report.findings) {
    if (!is_unhandled(finding) || !finding.expectation || finding.expectation->file.empty()) continue;
    const report::Expectation& rule = *finding.expectation;
    std::string text = "broken rule at " + rule.file + ":" + std::to_string(rule.line) + ": " + rule.sentence;
    if (rule.name_differs()) text += " (" + rule.rule + ")";
    if (std::ranges::find(found, text) == found.end()) found.push_back(std::move(text));
  }
  return found;
}

// A training process: one that came to a second iteration, or stepped an optimizer.
bool trains(const Process& process) {
  return process.steps > 1 || process.optimizer_steps > 0;
}

bool was_stopped(const Process& process) {
  return process.close == trace::CloseMark::stopped;
}

// A launcher that goes on after its ranks may fail for what they have not written.
bool only_the_launcher_failed(const report::Report& report) {
  const auto& processes = report.run.processes;
  return std::ranges::any_of(processes, was_stopped) && std::ranges::all_of(processes, [](const Process& process) {
           return !trains(process) || was_stopped(process);
         });
}

std::string what_ran(const report::Report& report, const Rehearsal& rehearsal) {
  const auto training = std::ranges::count_if(report.run.processes, trains);
  const std::string devices = counted(static_cast<std::uint64_t>(rehearsal.devices), "simulated device") + " of " +
                              report::bytes_text(rehearsal.device_memory);
  if (training == 0) return "no training step was seen; " + devices;
  return counted(static_cast<std::uint64_t>(training), "process") + " made " +
         counted(report.run.optimizer_steps, "optimizer step") + " on " + devices;
}

std::string about_memory(const Rehearsal& rehearsal) {
  return "each device had " + report::bytes_text(rehearsal.device_memory) +
         ", which is what this machine can spare; the program needs more. Rehearse a smaller model or batch, or on a "
         "machine with more memory.";
}

void add_remarks(const report::Report& report, const Rehearsal& rehearsal, std::vector<std::string>& lines) {
  lines.push_back(what_ran(report, rehearsal));
  const bool stopped = std::ranges::any_of(report.run.processes, was_stopped);
  const auto wanted = static_cast<std::uint32_t>(rehearsal.steps);
  if (stopped && report.run.optimizer_steps == 0) {
    lines.emplace_back("no step of an optimizer was seen, so the processes were stopped by their iterations");
  } else if (!stopped && report.run.optimizer_steps < wanted) {
    lines.push_back("the command ended by itself before " + counted(wanted, "optimizer step"));
  }
  lines.insert(lines.end(), rehearsal.remarks.begin(), rehearsal.remarks.end());
}

}  // namespace

Verdict verdict_on(const report::Report& report, const Rehearsal& rehearsal, int status, const std::string& untraced) {
  std::vector<std::string> missing = not_covered(report);
  std::uint64_t found = 0;
  bool lacks_memory = false;
  for (const Finding& finding : report.findings) {
    if (!is_unhandled(finding)) continue;
    if (is_lack_of_memory_here(finding, rehearsal)) {
      lacks_memory = true;
    } else {
      ++found;
    }
  }
  Verdict verdict;
  const bool failed = status != 0 && !only_the_launcher_failed(report);
  if (found > 0 || rehearsal.errors_of_doctor > 0) {
    verdict = {kFindingStatus, {counted(found, "finding")}};
    if (rehearsal.errors_of_doctor > 0) {
      verdict.lines[0] += ", " + counted(rehearsal.errors_of_doctor, "error") + " of devsan doctor";
    }
  } else if (lacks_memory || (failed && !missing.empty())) {
    verdict = {kNotSimulatedStatus, {"could not be simulated"}};
  } else if (report.run.processes.empty() && !failed) {
    verdict = {kNotSimulatedStatus, {"could not be simulated: no process of the command ran an operator of torch"}};
    if (!untraced.empty()) verdict.lines.push_back(untraced);
  } else if (failed) {
    verdict = {status, {"the command failed with status " + std::to_string(status) + ", and devsan found nothing"}};
  } else {
    verdict = {0, {"ok"}};
  }
  if (lacks_memory) verdict.lines.push_back(about_memory(rehearsal));
  for (std::string& broken : broken_rules(report)) verdict.lines.push_back(std::move(broken));
  for (std::string& what : missing) verdict.lines.push_back("simulated devices do not cover " + what);
  if (status != 0 && !failed) {
    verdict.lines.push_back("the command ended with status " + std::to_string(status) +
                            " after its ranks had been stopped");
  }
  add_remarks(report, rehearsal, verdict.lines);
  return verdict;
}

Verdict verdict_without_run(const std::string& why) {
  return {kNotSimulatedStatus, {"could not be simulated: " + why}};
}

}  // namespace devsan::launch
