#include "report/render/summary.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "report/findings/build_endings.h"
#include "report/model/frames.h"
#include "report/model/operands.h"
#include "report/render/headline.h"
#include "report/render/terminal_parts.h"
#include "report/text/lines.h"
#include "report/text/text_layout.h"
#include "report/text/words.h"
#include "report/wording/collective_text.h"

namespace devsan::report {
namespace {

constexpr std::size_t kShownFindings = 5;
constexpr std::size_t kNamedProcesses = 4;
constexpr std::size_t kShownDamage = 6;
constexpr std::size_t kShownUnused = 20;

std::uint64_t count_of(const Report& report, Severity severity) {
  return static_cast<std::uint64_t>(std::ranges::count(report.findings, severity, &Finding::severity));
}

std::string who(const Process& process) {
  std::string text = process.rank ? "rank " + std::to_string(*process.rank) + " (pid " : "pid ";
  text += std::to_string(process.pid);
  return process.rank ? text + ")" : text;
}

// The last operator of the thread that ran most of them.
const LastOperator* last_operator(const Process& process) {
  const auto thread = std::ranges::max_element(process.threads, {}, &Thread::operators);
  return thread == process.threads.end() || thread->last.empty() ? nullptr : &thread->last.front();
}

std::string verdict(const Report& report, const Style& style) {
  const std::uint64_t errors = count_of(report, Severity::error);
  const std::uint64_t warnings = count_of(report, Severity::warning);
  std::string text;
  if (errors > 0) text += painted(style, Paint::error, counted(errors, "error"));
  if (warnings > 0)
    text += (text.empty() ? "" : " and ") + painted(style, Paint::warning, counted(warnings, "warning"));
  if (text.empty()) text = painted(style, Paint::good, "no finding");
  text += " in " + counted(report.run.processes.size(), "process");
  if (report.run.steps > 0) text += ", " + counted(report.run.steps, "step");
  if (report.run.optimizer_steps > 0) text += " (" + counted(report.run.optimizer_steps, "optimizer step") + ")";
  if (!report.suppressed.empty()) text += "; " + std::to_string(report.suppressed.size()) + " suppressed";
  return text;
}

void append_notices(Lines& lines, const Report& report, const Style& style) {
  for (const Notice& notice : report.run.notices) {
    std::string text = notice.text;
    if (notice.count > 1) text += " (in " + counted(notice.count, "process") + ")";
    append_item(lines, text, style);
  }
}

void append_unused(Lines& lines, const Report& report, const Style& style) {
  std::size_t unused = 0;
  for (const SuppressionUse& use : report.run.suppressions) {
    if (use.count > 0 || ++unused > kShownUnused) continue;
    append_item(lines, "unused suppression: " + use.file + ":" + std::to_string(use.line) + ": " + use.text, style);
  }
  if (unused > kShownUnused) lines.push_back("  … and " + counted(unused - kShownUnused, "more unused suppression"));
}

// "ranks 0-3 were started 2 times: they are shown as one run"
void append_attempts(Lines& lines, const Report& report, const Style& style) {
  std::map<int, int> attempts;  // by rank
  for (const Process& process : report.run.processes) {
    if (process.rank) attempts[*process.rank] = std::max(attempts[*process.rank], process.attempt.value_or(0) + 1);
  }
  std::map<int, std::vector<int>> ranks;  // by how often they were started
  for (const auto& [rank, count] : attempts) {
    if (count > 1) ranks[count].push_back(rank);
  }
  for (const auto& [count, some] : ranks) {
    append_item(lines,
                ranks_text(some) + (some.size() == 1 ? " was" : " were") + " started " + std::to_string(count) +
                    " times; these attempts are shown as one run",
                style);
  }
  for (const std::string& text : earlier_failure_texts(report.run.earlier_failures)) append_item(lines, text, style);
}

void append_halted(Lines& lines, const Report& report, const Style& style) {
  std::size_t halted = 0;
  for (const Process& process : report.run.processes) {
    if (process.close != trace::CloseMark::halted || ++halted > kNamedProcesses) continue;
    append_item(lines, who(process) + " was ended by --halt", style);
  }
  if (halted > kNamedProcesses) lines.push_back("  … and " + counted(halted - kNamedProcesses, "more process"));
}

// A finding of several ranks has the number of one process alone.
bool is_end_told(const Process& process, const Report& report) {
  const auto is_its_own = [&](const Finding& finding) {
    if (finding.kind != Kind::abnormal_exit) return false;
    return finding.pid == process.pid || (process.rank && std::ranges::binary_search(finding.ranks, *process.rank));
  };
  return std::ranges::any_of(report.findings, is_its_own) || std::ranges::any_of(report.suppressed, is_its_own);
}

// A rank that raised may be ended by the launcher on its way down, since others felt it. Why it failed is told already.
bool went_down_after_raising(const Process& process, const Report& report) {
  return process.uncaught && process.rank && report.run.first_failure && process.ended.value_or(true);
}

// "was ended by SIGTERM"; without a word of whoever was told, its trace cannot say what became of it.
std::string how_it_ended(const Process& process) {
  const int signal = process.ending ? process.ending->signal : 0;
  if (signal != 0) return "was ended by " + signal_name(signal);
  const std::string end = "did not exit by itself (killed, crashed, or running still)";
  return process.uncaught ? "raised " + process.uncaught->type + ", and " + end : end;
}

// "ranks 0-2 were ended by SIGTERM after rank 3 had failed". Of the children of a rank nothing is told.
void append_ended_after(Lines& lines, const Report& report, const Style& style) {
  std::map<std::pair<int, int>, std::set<int>> ranks;  // by the rank that failed, and the signal
  for (const Process& process : report.run.processes) {
    if (!process.ended_after || process.operators == 0 || process.ended_after == process.rank) continue;
    ranks[{*process.ended_after, process.ending ? process.ending->signal : 0}].insert(*process.rank);
  }
  for (const auto& [how, some] : ranks) {
    const auto& [failed, signal] = how;
    std::string text = ranks_text({some.begin(), some.end()});
    text += some.size() == 1 ? " was ended" : " were ended";
    if (signal != 0) text += " by " + signal_name(signal);
    append_item(lines, text + " after rank " + std::to_string(failed) + " had failed", style);
  }
}

// What has no mark of its end, and no other explanation.
void append_open_processes(Lines& lines, const Report& report, const Style& style) {
  std::size_t shown = 0;
  std::size_t open = 0;
  for (const Process& process : report.run.processes) {
    if (process.close != trace::CloseMark::open || process.operators == 0) continue;
    if (process.ended_after || is_end_told(process, report) || went_down_after_raising(process, report)) continue;
    if (++open > kNamedProcesses) continue;
    std::string text = who(process) + " " + how_it_ended(process);
    if (const LastOperator* last = last_operator(process)) {
      text += "; its last operator was " + last->op;
      if (!last->at.file.empty()) {
        text += " at " + short_place(last->at);
      }
      text += ", step " + std::to_string(last->step);
    }
    append_item(lines, text, style);
    ++shown;
  }
  if (open > shown) lines.push_back("  … and " + counted(open - shown, "more process"));
}

void append_damage(Lines& lines, const Report& report, const Style& style) {
  std::size_t full = 0;
  for (const Process& process : report.run.processes) {
    if (process.lost_events == 0 || ++full > kNamedProcesses) continue;
    append_item(lines, counted(process.lost_events, "record") + " of " + who(process) + " had no room in its trace",
                style);
  }
  if (full > kNamedProcesses) {
    lines.push_back("  … and of " + counted(full - kNamedProcesses, "more process"));
  }
  std::size_t shown = 0;
  for (const Damage& damage : report.damage) {
    if (shown++ == kShownDamage) break;
    const std::string file(base_name(damage.file));
    const std::string what =
        damage.bytes > 0 ? bytes_text(damage.bytes) + " of " + file + " could not be read: " : file + ": ";
    append_item(lines, what + damage.reason, style, Paint::warning);
  }
  if (report.damage.size() > kShownDamage) {
    lines.push_back("  … and " + counted(report.damage.size() - kShownDamage, "more damaged place"));
  }
}

// The directory that all traces are in, or else the first trace.
std::string view_argument(const Report& report) {
  if (report.run.processes.empty()) return "";
  const std::filesystem::path first(report.run.processes.front().file);
  const bool together = std::ranges::all_of(report.run.processes, [&](const Process& process) {
    return std::filesystem::path(process.file).parent_path() == first.parent_path();
  });
  return together && first.has_parent_path() ? first.parent_path().string() : first.string();
}

}  // namespace

std::vector<std::string> finding_in_short(const Finding& finding, const Style& style) {
  Lines lines;
  const Paint paint = finding.severity == Severity::error ? Paint::error : Paint::warning;
  const std::string label = std::string(name_of(finding.severity)) + "[" + std::string(name_of(finding.kind)) + "]";
  lines.push_back("  " + painted(style, paint, label) + " " +
                  painted(style, Paint::strong, cut_right(short_headline(finding), style.width - label.size() - 3)));
  if (finding.where) {
    const std::string number = ":" + std::to_string(finding.where->line);
    lines.push_back("    at " + painted(style, Paint::place,
                                        cut_path(finding.where->file, style.width - 7 - number.size()) + number));
  }
  if (const Operand* odd = first_odd(finding.operands)) {
    append_wrapped(lines, "`" + spoken_name(*odd) + "` is on " + odd->device, 4, style);
  }
  if (finding.fix) {
    lines.push_back("    " + painted(style, Paint::good, "change") + " " +
                    cut_middle(std::string(base_name(finding.fix->file)) + ":" + std::to_string(finding.fix->line),
                               style.width - 11));
  }
  for (std::string& line : circumstances(finding, 4, style)) lines.push_back(std::move(line));
  return lines;
}

bool has_something_to_tell(const Report& report) {
  return count_of(report, Severity::error) + count_of(report, Severity::warning) > 0 || !report.damage.empty() ||
         !report.run.notices.empty() || report.run.first_failure ||
         std::ranges::count(report.run.suppressions, 0u, &SuppressionUse::count) > 0 ||
         std::ranges::any_of(report.run.processes, [](const Process& process) { return process.lost_events > 0; });
}

std::vector<std::string> closing_lines(const Report& report, const Style& style) {
  Lines lines = {painted(style, Paint::strong, "devsan: ") + verdict(report, style)};
  append_notices(lines, report, style);
  append_attempts(lines, report, style);
  append_halted(lines, report, style);
  append_ended_after(lines, report, style);
  append_open_processes(lines, report, style);
  append_unused(lines, report, style);
  append_damage(lines, report, style);
  return lines;
}

std::string summary(const Report& report, const Style& style) {
  Lines lines = closing_lines(report, style);
  // The reason comes before what followed from it.
  Lines first;
  if (report.run.first_failure) {
    append_item(first, first_failure_text(*report.run.first_failure), style, Paint::strong);
    const std::string waited = then_waited_text(*report.run.first_failure);
    if (!waited.empty()) append_item(first, waited, style);
  }
  lines.insert(lines.begin() + 1, first.begin(), first.end());
  std::size_t shown = 0;
  std::size_t loud = 0;
  for (const Finding& finding : report.findings) {
    if (finding.severity == Severity::note || ++loud > kShownFindings) continue;
    lines.emplace_back();
    for (std::string& line : finding_in_short(finding, style)) lines.push_back(std::move(line));
    ++shown;
  }
  if (loud > shown) lines.push_back("  … and " + counted(loud - shown, "more finding"));
  if (has_something_to_tell(report) && !report.run.processes.empty()) {
    if (loud > 0) lines.emplace_back();
    lines.push_back("devsan: to see it all: devsan view " + view_argument(report));
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace devsan::report
