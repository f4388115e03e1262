#include "hooks/inprocess/events/taking_site.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hooks/inprocess/common/runtime.h"
#include "hooks/inprocess/source/file_lines.h"
#include "hooks/inprocess/source/python_text.h"
#include "trace/words.h"

namespace devsan::hooks {

namespace {

// Whether an expression uses a variable as it is: `x[:, n]` and `f(n)`, not `n.item()` or `n[0]`.
bool uses_as_it_is(std::string_view expression, std::string_view name) {
  for (std::size_t at = trace::name_in(expression, name); at != expression.npos;
       at = trace::name_in(expression, name, at + 1)) {
    const std::string_view behind = trimmed(expression.substr(at + name.size()));
    const bool asked = !behind.empty() && std::string_view(".[(").find(behind.front()) != std::string_view::npos;
    if (!asked && (at == 0 || expression[at - 1] != '.')) return true;
  }
  return false;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && trace::is_word(text[end])) ++end;
    if (end > begin) words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

bool uses_any(std::string_view expression, std::string_view targets) {
  return std::ranges::any_of(words_of(targets), [&](std::string_view one) { return uses_as_it_is(expression, one); });
}

bool goes_through_numbers(std::string_view head) {
  constexpr std::array<std::string_view, 4> kToHost = {"tolist", "cpu", "numpy", "items"};
  return head.find(" in range(") != head.npos || trace::calls_method(head, kToHost);
}

// `offsets[k + 1]`, and no slice, nor what is on the host.
bool takes_element(std::string_view value) {
  const std::size_t open = std::min(value.find('['), value.size());
  return value.ends_with(']') && closing_of(value, open) == value.size() - 1 && value.find(':', open) == value.npos &&
         value.find(".shape[") == value.npos && !trace::brings_to_host(value);
}

// The line above that gives one of the variables an element; 0 without one, and where several do.
int only_element_above(const SourceLines& lines, int line, std::string_view expression) {
  const int definition = enclosing_line(lines, line, "def ");
  int found = 0;
  for (const std::string_view word : words_of(expression)) {
    if (!is_identifier(word) || !uses_as_it_is(expression, word)) continue;
    const std::vector<int> assigned = assignments_of(lines, word, definition + 1, line);
    if (assigned.size() != 1 || assigned.front() == found) continue;
    const auto value = assigned_to(statement_at(lines, assigned.front()), word);
    if (!value || !takes_element(*value)) continue;
    if (found != 0) return 0;
    found = assigned.front();
  }
  return found;
}

// A number that is one of several in its memory.
bool is_element(std::span<const trace::OperandRecord> operands) {
  constexpr std::uint64_t kLargestNumber = 16;
  return !operands.empty() && operands.front().dims == 0 && operands.front().storage_bytes > kLargestNumber;
}

// The loop that a line stands in, in its own function; 0 without one.
int loop_around(const SourceLines& lines, int line) {
  const int loop = enclosing_line(lines, line, "for ");
  return loop != 0 && enclosing_line(lines, loop, "def ") == enclosing_line(lines, line, "def ") ? loop : 0;
}

std::optional<trace::Position> taking_line(const trace::Position& at, std::span<const trace::OperandRecord> operands) {
  FileLines files;
  const SourceLines& lines = files.of(at.file);
  const std::string expression = code_text(lines, at);
  if (const int loop = loop_around(lines, at.line); loop != 0) {
    const std::string head = statement_at(lines, loop);
    const bool takes = !goes_through_numbers(head) && uses_any(expression, loop_targets(head));
    if (takes) return position_of_line(at.file, lines, loop);
  }
  const int line = is_element(operands) ? only_element_above(lines, at.line, expression) : 0;
  return line != 0 ? std::optional(position_of_line(at.file, lines, line)) : std::nullopt;
}

}  // namespace

trace::SiteId taking_site(trace::SiteId site, std::span<const trace::OperandRecord> operands) noexcept {
  try {
    const auto found = taking_line(runtime.recorder->site(site).user, operands);
    return found ? runtime.recorder->add_site({*found, *found}) : trace::SiteId::none;
  } catch (const std::exception&) {  // a cause is worth no failure
    return trace::SiteId::none;
  }
}

}  // namespace devsan::hooks
