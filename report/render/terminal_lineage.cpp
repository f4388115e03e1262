// The histories of operands, each as a table of places.
#include <algorithm>
#include <memory>
#include <string_view>

#include "report/model/frames.h"
#include "report/model/operands.h"
#include "report/render/source_excerpt.h"
#include "report/render/terminal_parts.h"
#include "report/text/lines.h"
#include "report/text/text_layout.h"
#include "report/text/words.h"

namespace devsan::report {
namespace {

constexpr std::size_t kShownGroups = 7;
constexpr std::size_t kShownCalls = 3;
constexpr std::string_view kCalled = "  called";
constexpr std::string_view kWithin = "  within";

// Consecutive steps of one line of code.
struct Group {
  const LineageStep* step;  // the most telling: created, moved, or else the newest
  std::size_t steps = 1;
  bool is_cause = false;
};

bool tells_more(const LineageStep& step, const LineageStep& than) {
  return than.how == trace::How::derived && step.how != trace::How::derived;
}

bool is_at(const std::optional<RootCause>& cause, const Frame& place) {
  return cause && cause->file == place.file && cause->line == place.line;
}

std::vector<Group> groups_of(const Operand& operand, const std::optional<RootCause>& cause) {
  std::vector<Group> groups;
  for (const LineageStep& step : operand.lineage) {
    const bool goes_on =
        !groups.empty() && same_line(groups.back().step->at, step.at) && groups.back().step->device == step.device;
    if (goes_on) {
      ++groups.back().steps;
      if (tells_more(step, *groups.back().step)) groups.back().step = &step;
    } else {
      groups.push_back({&step});
    }
    if (is_at(cause, step.at)) groups.back().is_cause = true;
  }
  return groups;
}

// The newest few, the root cause, whatever moved, and the origin.
std::vector<bool> chosen(const std::vector<Group>& groups) {
  std::vector<bool> shown(groups.size(), groups.size() <= kShownGroups);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool telling = groups[i].is_cause || groups[i].step->how != trace::How::derived;
    if (i < kShownGroups - 3 || telling || i + 1 == groups.size()) shown[i] = true;
  }
  // Leaving out a single line would take a line to say so.
  for (std::size_t i = 1; i + 1 < groups.size(); ++i) {
    if (!shown[i] && shown[i - 1] && shown[i + 1]) shown[i] = true;
  }
  return shown;
}

std::string place_of(const LineageStep& step) {
  if (step.at.file.empty()) return "(native code)";
  return short_place(step.at);
}

// Its device goes without saying where it is the one that the history is about.
std::string how_of(const LineageStep& step, const std::string& device) {
  const std::string how(step.how == trace::How::derived ? "computed" : name_of(step.how));
  if (step.device == device) return how;
  return how + (step.how == trace::How::moved ? " to " : " on ") + cut_right(step.device, 16);
}

// The line that the step came from; of the line that failed, which is shown in full already, only the step's own part.
std::string code_of(const LineageStep& step, const Finding& finding) {
  const Frame& at = step.at;
  if (at.source.empty()) return step.op;
  const bool failing = finding.where && same_line(*finding.where, at);
  const bool has_columns = at.column >= 0 && at.end_line == at.line && at.column < at.end_column &&
                           static_cast<std::size_t>(at.end_column) <= at.source.size();
  if (!failing || !has_columns) return bare_source(at.source);
  const auto begin = static_cast<std::size_t>(at.column);
  return bare_source(std::string_view(at.source).substr(begin, static_cast<std::size_t>(at.end_column) - begin));
}

// The calls that led to a step, as far as they are no part of the stack that failed, which is shown. A line that a
// comprehension stands in leads to itself: once is enough.
std::vector<const Frame*> returned_calls(const LineageStep& step, const Finding& finding) {
  std::vector<const Frame*> calls;
  const Frame* last = &step.at;
  for (const Frame& call : step.calls) {
    const auto is_call = [&](const Frame& frame) { return same_line(frame, call); };
    if (std::ranges::any_of(finding.stack, is_call) || calls.size() == kShownCalls) break;
    if (!is_call(*last)) calls.push_back(&call);
    last = &call;
  }
  return calls;
}

struct Columns {
  std::size_t how = 0;
  std::size_t place = 0;

  void fit(std::string_view how_text, std::string_view place_text) {
    how = std::max(how, columns_of(how_text));
    place = std::min<std::size_t>(std::max(place, columns_of(place_text)), 28);
  }
};

std::string marker_of(bool is_cause, const Style& style) {
  return is_cause ? "  " + painted(style, Paint::good, "▸") + " " : "    ";
}

std::string row(const Columns& columns, std::string_view how, std::string_view place, std::string_view code,
                const Style& style) {
  const std::size_t used = 4 + columns.how + 2 + columns.place + 2;
  return pad_right(std::string(how), columns.how) + "  " +
         painted(style, Paint::place, pad_right(cut_middle(place, columns.place), columns.place)) + "  " +
         cut_right(code, style.width - std::min(used, style.width - 8));
}

Lines history_lines(const Operand& operand, const Finding& finding, const Style& style) {
  const std::vector<Group> groups = groups_of(operand, finding.root_cause);
  const std::vector<bool> shown = chosen(groups);
  // The step that brought it to its device is the one to know more of.
  const auto arrives = [](const Group& group) { return group.step->how != trace::How::derived; };
  const auto arrival = std::ranges::find_if(groups, arrives);
  const auto calls = arrival != groups.end() ? returned_calls(*arrival->step, finding) : std::vector<const Frame*>();
  Columns columns;
  for (const Group& group : groups) columns.fit(how_of(*group.step, operand.device), place_of(*group.step));
  for (const Frame* call : calls) columns.fit(kCalled, short_place(*call));
  const Frame* within =
      arrival != groups.end() && !arrival->step->within.empty() ? &arrival->step->within.front() : nullptr;
  if (within != nullptr) columns.fit(kWithin, short_place(*within));

  Lines lines;
  const std::string device = cut_right(operand.device, 16);
  const std::string_view order = groups.size() > 1 ? ", newest first" : "";
  const std::size_t fixed = columns_of("  Where `` on  comes from") + columns_of(device) + order.size();
  const std::string name = cut_middle(spoken_name(operand), style.width - fixed);
  lines.push_back("  " + painted(style, Paint::strong, "Where `" + name + "` on " + device + " comes from") +
                  painted(style, Paint::faint, order));
  const auto add_place = [&](std::string_view how, const Frame& place) {
    lines.push_back(marker_of(is_at(finding.root_cause, place), style) +
                    row(columns, how, short_place(place), bare_source(place.source), style));
  };
  std::size_t skipped = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!shown[i]) {
      skipped += groups[i].steps;
      continue;
    }
    if (skipped > 0) lines.push_back("    " + painted(style, Paint::faint, "… " + counted(skipped, "more step")));
    skipped = 0;
    const LineageStep& step = *groups[i].step;
    lines.push_back(marker_of(groups[i].is_cause, style) +
                    row(columns, how_of(step, operand.device), place_of(step), code_of(step, finding), style));
    if (&groups[i] != std::to_address(arrival)) continue;
    if (within != nullptr) add_place(kWithin, *within);
    for (const Frame* call : calls) add_place(kCalled, *call);
  }
  return lines;
}

// The odd one, and those that the cause or another line to change is about.
bool is_told_of(const Operand& operand, const Finding& finding) {
  if (operand.lineage.empty()) return false;
  const std::string& name = spoken_name(operand);
  const auto is_about = [&](const RootCause& cause) { return cause.operand == name; };
  return &operand == first_odd(finding.operands) || (finding.root_cause && is_about(*finding.root_cause)) ||
         std::ranges::any_of(finding.alternatives, is_about);
}

}  // namespace

Lines lineage_lines(const Finding& finding, const Style& style) {
  const Operand* odd = first_odd(finding.operands);
  Lines lines;
  const auto add = [&](const Operand& operand) {
    if (!is_told_of(operand, finding)) return;
    if (!lines.empty()) lines.emplace_back();
    for (std::string& line : history_lines(operand, finding, style)) lines.push_back(std::move(line));
  };
  if (odd != nullptr) add(*odd);
  for (const Operand& operand : finding.operands) {
    if (&operand != odd) add(operand);
  }
  return lines;
}

}  // namespace devsan::report
