// The difference of two texts by lines.
#include <algorithm>
#include <string>
#include <vector>

#include "report/program/edits.h"

namespace devsan::program {
namespace {

constexpr std::size_t kContext = 3;
// Beyond this many cells of the table, lines between the first and the last difference count as all different.
constexpr std::size_t kLargestTable = std::size_t{1} << 22;

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t size = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

struct Step {
  char mark;  // ' ', '-' or '+'
  std::string_view line;
};

void take(std::vector<Step>& steps, char mark, const Lines& lines, std::size_t from, std::size_t to) {
  for (std::size_t at = from; at < to; ++at) steps.push_back({mark, lines[at]});
}

// By the longest common subsequence of the lines [from, to) of each.
void compare(std::vector<Step>& steps, const Lines& before, const Lines& after, std::size_t from, std::size_t before_to,
             std::size_t after_to) {
  const std::size_t rows = before_to - from;
  const std::size_t columns = after_to - from;
  if (rows * columns > kLargestTable) {
    take(steps, '-', before, from, before_to);
    take(steps, '+', after, from, after_to);
    return;
  }
  std::vector<std::uint32_t> table((rows + 1) * (columns + 1), 0);
  const auto cell = [&table, columns](std::size_t row, std::size_t column) -> std::uint32_t& {
    return table[row * (columns + 1) + column];
  };
  for (std::size_t row = rows; row-- > 0;) {
    for (std::size_t column = columns; column-- > 0;) {
      const bool same = before[from + row] == after[from + column];
      cell(row, column) = same ? cell(row + 1, column + 1) + 1 : std::max(cell(row + 1, column), cell(row, column + 1));
    }
  }
  std::size_t row = 0;
  std::size_t column = 0;
  while (row < rows || column < columns) {
    const bool same = row < rows && column < columns && before[from + row] == after[from + column];
    const bool removed = row < rows && (column == columns || cell(row + 1, column) >= cell(row, column + 1));
    if (same) {
      steps.push_back({' ', before[from + row]});
    } else {
      steps.push_back(removed ? Step{'-', before[from + row]} : Step{'+', after[from + column]});
    }
    row += same || removed ? 1 : 0;
    column += same || !removed ? 1 : 0;
  }
}

std::vector<Step> steps_between(const Lines& before, const Lines& after) {
  const std::size_t shorter = std::min(before.size(), after.size());
  std::size_t head = 0;
  while (head < shorter && before[head] == after[head]) ++head;
  std::size_t tail = 0;
  while (tail < shorter - head && before[before.size() - 1 - tail] == after[after.size() - 1 - tail]) ++tail;
  std::vector<Step> steps;
  take(steps, ' ', before, 0, head);
  compare(steps, before, after, head, before.size() - tail, after.size() - tail);
  take(steps, ' ', before, before.size() - tail, before.size());
  return steps;
}

std::string place(std::size_t first, std::size_t count) {
  // An empty range is named by the line before it.
  return std::to_string(count == 0 ? first : first + 1) + (count == 1 ? "" : "," + std::to_string(count));
}

// The steps [from, to), which are a change with its context.
std::string hunk(const std::vector<Step>& steps, std::size_t from, std::size_t to) {
  std::size_t first[2] = {0, 0};
  std::size_t count[2] = {0, 0};
  std::string body;
  for (std::size_t at = 0; at < to; ++at) {
    const Step& step = steps[at];
    std::size_t* counted = at < from ? first : count;
    counted[0] += step.mark != '+' ? 1 : 0;
    counted[1] += step.mark != '-' ? 1 : 0;
    if (at < from) continue;
    body += step.mark;
    body += step.line;
    if (!step.line.ends_with('\n')) body += "\n\\ No newline at end of file\n";
  }
  return "@@ -" + place(first[0], count[0]) + " +" + place(first[1], count[1]) + " @@\n" + body;
}

}  // namespace

std::string as_unified_diff(std::string_view path, std::string_view old_text, std::string_view new_text) {
  if (old_text == new_text) return "";
  const std::vector<Step> steps = steps_between(lines_of(old_text), lines_of(new_text));
  std::string text = "--- " + std::string(path) + "\n+++ " + std::string(path) + "\n";
  for (std::size_t at = 0; at < steps.size();) {
    if (steps[at].mark == ' ') {
      ++at;
      continue;
    }
    const std::size_t from = at - std::min(at, kContext);
    // Changes with little between them are one hunk.
    std::size_t last = at;
    for (std::size_t next = at; next < steps.size() && next <= last + 2 * kContext; ++next) {
      if (steps[next].mark != ' ') last = next;
    }
    const std::size_t to = std::min(steps.size(), last + 1 + kContext);
    text += hunk(steps, from, to);
    at = last + 1;
  }
  return text;
}

}  // namespace devsan::program
