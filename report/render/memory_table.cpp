#include "report/render/memory_table.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "report/render/terminal_parts.h"
#include "report/text/text_layout.h"
#include "report/text/words.h"
#include "report/wording/live_memory_text.h"

namespace devsan::report {
namespace {

constexpr std::size_t kShownProcesses = 4;
constexpr std::size_t kCurveColumns = 24;
constexpr std::array<std::string_view, 8> kHeights = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

using TableRow = std::array<std::string, 6>;
constexpr std::array<std::string_view, 6> kTitles = {"", "first", "peak", "at step", "last", "held"};

std::string title_of(const Process& process) {
  const std::string pid = "pid " + std::to_string(process.pid);
  return process.rank ? "rank " + std::to_string(*process.rank) + " (" + pid + ")" : pid;
}

TableRow row_of(const MemoryCurve& curve) {
  const MemoryPoint& last = curve.points.back();
  return {curve.device.empty() ? "host" : curve.device,
          bytes_text(curve.points.front().used),
          bytes_text(curve.peak.used),
          std::to_string(curve.peak.step),
          bytes_text(last.used),
          bytes_text(last.held)};
}

}  // namespace

std::vector<std::string> memory_lines(const std::vector<MemoryCurve>& curves, const Style& style) {
  std::vector<std::string> lines;
  std::vector<TableRow> rows = {TableRow{}};
  std::ranges::copy(kTitles, rows.front().begin());
  for (const MemoryCurve& curve : curves) rows.push_back(row_of(curve));
  std::array<std::size_t, kTitles.size()> columns{};
  for (const TableRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) columns[i] = std::max(columns[i], columns_of(row[i]));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string line = "  ";
    for (std::size_t column = 0; column < columns.size(); ++column) {
      const std::string pad(columns[column] - columns_of(rows[i][column]), ' ');
      line += column == 0 ? rows[i][column] + pad : "  " + pad + rows[i][column];
    }
    if (i == 0) {
      lines.push_back(painted(style, Paint::faint, line));
    } else {
      // With room for the indentation that the caller may add.
      const std::size_t taken = columns_of(line) + 4;
      const std::size_t room = style.width > taken ? style.width - taken : 0;
      lines.push_back(line + "  " + sparkline(curves[i - 1].points, std::min(room, kCurveColumns)));
    }
  }
  return lines;
}

std::string sparkline(const std::vector<MemoryPoint>& points, std::size_t columns) {
  columns = std::min(columns, points.size());
  if (columns == 0) return {};
  std::vector<std::uint64_t> highest(columns, 0);
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::uint64_t& most = highest[i * columns / points.size()];
    most = std::max(most, points[i].used);
  }
  const std::uint64_t peak = *std::ranges::max_element(highest);
  std::string text;
  for (const std::uint64_t used : highest) {
    const double share = peak == 0 ? 0 : static_cast<double>(used) / static_cast<double>(peak);
    text += kHeights[std::min(static_cast<std::size_t>(share * kHeights.size()), kHeights.size() - 1)];
  }
  return text;
}

std::vector<std::string> memory_table(const std::vector<const Process*>& processes, const Style& style) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(processes.size(), kShownProcesses); ++i) {
    lines.push_back(painted(style, Paint::strong, "memory of ") + title_of(*processes[i]));
    if (!processes[i]->memory.empty()) {
      std::ranges::copy(memory_lines(processes[i]->memory, style), std::back_inserter(lines));
    }
    for (const PeakMemory& peak : processes[i]->peak_memory) {
      if (!lines.back().empty()) lines.emplace_back();
      std::ranges::copy(peak_memory_lines(peak, style), std::back_inserter(lines));
    }
  }
  if (processes.size() > kShownProcesses) {
    lines.push_back("… and of " + counted(processes.size() - kShownProcesses, "more process"));
  }
  return lines;
}

}  // namespace devsan::report
