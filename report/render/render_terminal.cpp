#include "report/render/render_terminal.h"

#include <algorithm>

#include "report/model/frames.h"
#include "report/render/ending_lines.h"
#include "report/render/headline.h"
#include "report/render/memory_table.h"
#include "report/render/source_excerpt.h"
#include "report/render/summary.h"
#include "report/render/terminal_parts.h"
#include "report/text/lines.h"
#include "report/text/text_layout.h"
#include "report/text/words.h"
#include "report/wording/attribute_text.h"
#include "report/wording/collective_text.h"
#include "report/wording/growth_text.h"
#include "report/wording/live_memory_text.h"
#include "report/wording/placement_text.h"
#include "report/wording/traffic_text.h"

namespace devsan::report {
namespace {

constexpr std::size_t kCallers = 2;

Paint paint_of(Severity severity) {
  switch (severity) {
    case Severity::error:
      return Paint::error;
    case Severity::warning:
      return Paint::warning;
    case Severity::note:
      return Paint::note;
  }
  return Paint::plain;
}

int largest_line(const Finding& finding) {
  int line = finding.where ? finding.where->line : 0;
  if (finding.root_cause) line = std::max(line, finding.root_cause->line);
  if (finding.fix) line = std::max(line, finding.fix->line);
  if (finding.forward && !finding.forward->empty()) line = std::max(line, finding.forward->front().line);
  return line;
}

void append(Lines& lines, Lines more) {
  for (std::string& line : more) lines.push_back(std::move(line));
}

void append_section(Lines& lines, Lines section) {
  if (section.empty()) return;
  lines.emplace_back();
  append(lines, std::move(section));
}

void append_place(Lines& lines, const Frame& frame, const Style& style) {
  const std::string number = ":" + std::to_string(frame.line);
  const std::string path = cut_path(frame.file, style.width - 5 - number.size());
  std::string line = "  at " + painted(style, Paint::place, path + number);
  if (frame.function.empty()) {
    lines.push_back(std::move(line));
    return;
  }
  const std::string function = " in " + cut_middle(frame.function, style.width - 10);
  if (5 + columns_of(path) + number.size() + columns_of(function) <= style.width) {
    lines.push_back(line + function);
  } else {
    lines.push_back(std::move(line));
    lines.push_back("    " + function);
  }
}

// The next callers outside torch, and the first one in code of the user's own if it is further out.
Lines caller_lines(const Finding& finding, const Style& style) {
  std::vector<const Frame*> outside;
  for (const Frame& frame : finding.stack) {
    if (!frame.torch) outside.push_back(&frame);
  }
  if (outside.size() < 2) return {};
  outside.erase(outside.begin());
  const auto own = std::ranges::find_if(outside, [](const Frame* frame) { return !frame->library; });
  const auto own_index = static_cast<std::size_t>(own - outside.begin());
  const auto is_shown = [&](std::size_t i) {
    return i < kCallers || i == own_index || (i == kCallers && i + 1 == own_index);
  };

  const auto place = [](const Frame& frame) { return cut_middle(short_place(frame), 36); };
  std::size_t columns = 0;
  for (std::size_t i = 0; i < outside.size(); ++i) {
    if (is_shown(i)) columns = std::max(columns, columns_of(place(*outside[i])));
  }
  Lines lines = {"  " + painted(style, Paint::faint, "called by")};
  std::size_t skipped = 0;
  const auto tell_skipped = [&] {
    if (skipped > 0) lines.push_back("    " + painted(style, Paint::faint, "… " + counted(skipped, "more frame")));
    skipped = 0;
  };
  for (std::size_t i = 0; i < outside.size(); ++i) {
    if (!is_shown(i)) {
      ++skipped;
      continue;
    }
    tell_skipped();
    lines.push_back("    " + painted(style, Paint::place, pad_right(place(*outside[i]), columns)) + "  " +
                    cut_middle(outside[i]->function, style.width - columns - 6));
  }
  tell_skipped();
  return lines;
}

Lines forward_lines(const Finding& finding, std::size_t gutter, const Style& style) {
  if (!finding.forward || finding.forward->empty()) return {};
  const auto outside = std::ranges::find_if(*finding.forward, [](const Frame& frame) { return !frame.torch; });
  const Frame& frame = outside == finding.forward->end() ? finding.forward->front() : *outside;
  Lines lines = {"  " + painted(style, Paint::strong, "The forward operator whose backward this is")};
  append_place(lines, frame, style);
  append(lines, excerpt(frame, marks_for(frame, {}), gutter, style));
  return lines;
}

Lines native_lines(const Finding& finding, const Style& style) {
  if (finding.where && finding.kind != Kind::host_dereference) return {};
  Lines lines;
  for (const NativeFrame& frame : finding.native_stack) {
    if (lines.size() == 6) break;
    const std::string symbol = frame.symbol.empty() ? "(no symbol)" : frame.symbol;
    lines.push_back("  " + pad_right(cut_middle(std::string(base_name(frame.module)), 26), 26) + "  " +
                    cut_middle(symbol, style.width - 30));
  }
  return lines;
}

// What is hidden, and the option that shows it.
void append_hidden(std::string& text, std::uint64_t count, std::string_view noun, std::string_view option,
                   const Style& style) {
  if (count == 0) return;
  text += painted(style, Paint::faint, counted(count, noun) + " hidden, " + std::string(option)) + "\n";
}

Lines finding_lines(const Finding& finding, const Style& style) {
  const std::size_t gutter = gutter_for(largest_line(finding));
  const std::string label = std::string(name_of(finding.severity)) + "[" + std::string(name_of(finding.kind)) + "]";
  Lines lines;
  Lines title;
  append_wrapped(title, headline(finding), 0, {false, style.width - label.size() - 1});
  for (std::size_t i = 0; i < title.size(); ++i) {
    lines.push_back((i == 0 ? painted(style, paint_of(finding.severity), label) + " " : std::string(4, ' ')) +
                    painted(style, Paint::strong, title[i]));
  }
  if (finding.where) append_place(lines, *finding.where, style);
  append(lines, circumstances(finding, 2, style));
  if (finding.silence) append_wrapped(lines, silence_text(*finding.silence), 2, style, Paint::faint);
  if (finding.traffic) append_wrapped(lines, traffic_cost(finding), 2, style, Paint::faint);
  if (finding.where) {
    append_section(lines, excerpt(*finding.where, marks_for(*finding.where, finding.operands), gutter, style));
  }
  append_section(lines, native_lines(finding, style));
  append_section(lines, caller_lines(finding, style));
  append_section(lines, forward_lines(finding, gutter, style));
  if (!finding.message.empty()) {
    const std::string_view said = finding.handled ? "PyTorch said (and the program caught it)" : "PyTorch said";
    append_section(lines, {"  " + painted(style, Paint::strong, said)});
    append_wrapped(lines, finding.message, 4, style);
  }
  append_section(lines, ending_lines(finding, style));
  if (finding.collective) append_section(lines, collective_lines(*finding.collective, style));
  append_section(lines, expectation_lines(finding, style));
  append_section(lines, writer_lines(finding, style));
  append_section(lines, growth_lines(finding, style));
  append_section(lines, live_memory_lines(finding, style));
  append_section(lines, operand_lines(finding, style));
  append_section(lines, apart_lines(finding, style));
  append_section(lines, lineage_lines(finding, style));
  append(lines, cause_lines(finding, gutter, style));
  return lines;
}

bool speaks_of_memory(const Finding& finding, const Process& process) {
  if (finding.kind != Kind::memory_growth && finding.kind != Kind::out_of_memory) return false;
  return process.rank ? std::ranges::binary_search(finding.ranks, *process.rank) : finding.pid == process.pid;
}

// Those whose memory over time is to be shown.
std::vector<const Process*> processes_with_memory(const Report& report, const Shown& shown) {
  std::vector<const Process*> processes;
  for (const Process& process : report.run.processes) {
    const auto tells = [&](const Finding& finding) {
      return (finding.severity != Severity::note || shown.notes) && speaks_of_memory(finding, process);
    };
    const bool wanted = shown.memory || std::ranges::any_of(report.findings, tells);
    if (wanted && !(process.memory.empty() && process.peak_memory.empty())) processes.push_back(&process);
  }
  return processes;
}

// What a person who has a thousand lines of logs wants to know at once.
Lines first_failure_lines(const Report& report, const Style& style) {
  Lines lines;
  if (!report.run.first_failure) return lines;
  const FirstFailure& failure = *report.run.first_failure;
  append_wrapped(lines, first_failure_text(failure), 0, style, Paint::strong);
  if (const std::string waited = then_waited_text(failure); !waited.empty()) append_wrapped(lines, waited, 2, style);
  const auto told = [](const Finding& finding) { return finding.collective && finding.severity != Severity::note; };
  if (failure.waiting && std::ranges::none_of(report.findings, told)) {
    append_section(lines, collective_lines(*failure.waiting, style));
  }
  lines.emplace_back();
  return lines;
}

}  // namespace

std::string render_finding(const Finding& finding, const Style& style) {
  std::string text;
  for (const std::string& line : finding_lines(finding, style)) text += line + "\n";
  return text;
}

std::string render_terminal(const Report& report, const Style& style, const Shown& shown) {
  std::string text;
  for (const std::string& line : first_failure_lines(report, style)) text += line + "\n";
  std::uint64_t notes = 0;
  std::uint64_t suppressed = 0;
  const auto show = [&](const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      if (finding.severity == Severity::note && !shown.notes) {
        ++notes;
      } else {
        text += render_finding(finding, style) + "\n";
      }
    }
  };
  show(report.findings);
  if (shown.suppressed) {
    show(report.suppressed);
  } else {
    suppressed = report.suppressed.size();
  }
  for (const std::string& line : memory_table(processes_with_memory(report, shown), style)) text += line + "\n";
  for (const std::string& line : closing_lines(report, style)) text += line + "\n";
  append_hidden(text, notes, "note", "--notes shows them", style);
  append_hidden(text, suppressed, "suppressed finding", "--suppressed shows them", style);
  append_hidden(text, report.run.other_runs, "earlier run", "--all-runs shows them", style);
  return text;
}

}  // namespace devsan::report
