#include "report/render/ending_lines.h"

#include <algorithm>

#include "report/model/frames.h"
#include "report/render/memory_table.h"
#include "report/render/terminal_parts.h"
#include "report/text/lines.h"
#include "report/text/text_layout.h"
#include "report/text/words.h"

namespace devsan::report {
namespace {

constexpr std::size_t kShownThreads = 4;
constexpr std::size_t kShownOperators = 3;

std::string operator_text(const LastOperator& op) {
  std::string text = op.op;
  if (!op.at.file.empty()) text += " at " + short_place(op.at);
  return text + ", step " + std::to_string(op.step);
}

void append_thread(std::vector<std::string>& lines, const Thread& thread, const Style& style) {
  lines.push_back("    " + (thread.name.empty() ? "thread " + std::to_string(thread.tid) : printable(thread.name)));
  for (std::size_t i = 0; i < std::min(thread.last.size(), kShownOperators); ++i) {
    lines.push_back("      " + cut_right(operator_text(thread.last[i]), style.width - 6));
  }
}

}  // namespace

std::vector<std::string> ending_lines(const Finding& finding, const Style& style) {
  std::vector<std::string> lines;
  if (!finding.last_moments) return lines;
  const LastMoments& last = *finding.last_moments;
  if (!last.ending.hint.empty()) {
    append_wrapped(lines, last.ending.hint, 2, style);
    if (!last.threads.empty()) lines.emplace_back();
  }
  if (!last.threads.empty()) {
    lines.push_back("  " + painted(style, Paint::strong, "The last operators, newest first"));
    for (std::size_t i = 0; i < std::min(last.threads.size(), kShownThreads); ++i) {
      append_thread(lines, last.threads[i], style);
    }
    if (last.threads.size() > kShownThreads) {
      lines.push_back("    … and " + counted(last.threads.size() - kShownThreads, "more thread"));
    }
  }
  if (!last.memory.empty()) {
    if (!lines.empty()) lines.emplace_back();
    lines.push_back("  " + painted(style, Paint::strong, "Its memory until then"));
    for (const std::string& line : memory_lines(last.memory, style)) lines.push_back("  " + line);
  }
  return lines;
}

}  // namespace devsan::report
