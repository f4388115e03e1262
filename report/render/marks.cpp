// Finding operands in the source line that failed.
#include <algorithm>
#include <cctype>
#include <optional>
#include <string>

#include "report/model/call_text.h"
#include "report/render/source_excerpt.h"
#include "report/text/text_layout.h"

namespace devsan::report {
namespace {

struct Span {
  std::size_t begin;
  std::size_t end;
};

// The bytes of the call in the line; the whole line, without indentation, where the columns are not known.
Span call_in(const Frame& frame) {
  const std::string_view source = frame.source;
  const std::size_t indent = std::min(source.find_first_not_of(" \t"), source.size());
  const std::size_t last = source.find_last_not_of(" \t\r\n");
  const Span line{indent, last == source.npos ? indent : last + 1};
  if (frame.column < 0) return line;
  const auto begin = static_cast<std::size_t>(frame.column);
  const auto end = frame.end_line > frame.line ? line.end : static_cast<std::size_t>(frame.end_column);
  if (begin >= line.end || end <= begin) return line;
  return {begin, std::min(end, line.end)};
}

// Best is an occurrence that nothing is taken from ("x" rather than the "x" of "x.weight").
std::optional<Span> best_place(std::string_view source, std::string_view name, Span within) {
  std::optional<Span> found;
  for (std::size_t at = find_name(source, name, within.begin); at != source.npos && at + name.size() <= within.end;
       at = find_name(source, name, at + 1)) {
    const char after = at + name.size() < source.size() ? source[at + name.size()] : ' ';
    if (after != '.' && after != '[' && after != '(') return Span{at, at + name.size()};
    if (!found) found = Span{at, at + name.size()};
  }
  return found;
}

// Names are put together with single quotes, and programs use either.
std::string with_single_quotes(std::string text) {
  std::ranges::replace(text, '"', '\'');
  return text;
}

// How the operand is written in the call, or what it is called: most often the same.
const std::string& written(const Operand& operand) {
  return operand.text.empty() ? operand.name : operand.text;
}

bool overlaps(const std::vector<Mark>& marks, Span span) {
  return std::ranges::any_of(marks, [&](const Mark& mark) { return span.begin < mark.end && mark.begin < span.end; });
}

}  // namespace

std::vector<Mark> marks_for(const Frame& frame, const std::vector<Operand>& operands) {
  if (frame.source.empty()) return {};
  const Span call = call_in(frame);
  std::vector<const Operand*> named;
  for (const Operand& operand : operands) {
    if (!written(operand).empty() && !operand.device.empty() && !operand.number) named.push_back(&operand);
  }
  // Odd ones claim their place first, then long names: a short one may be part of them.
  std::ranges::stable_sort(named, [](const Operand* a, const Operand* b) {
    return a->odd != b->odd ? a->odd : written(*a).size() > written(*b).size();
  });
  std::vector<Mark> marks;
  const std::string source = with_single_quotes(frame.source);
  for (const Operand* operand : named) {
    const auto span = best_place(source, with_single_quotes(written(*operand)), call);
    if (!span || overlaps(marks, *span)) continue;
    marks.push_back(
        {span->begin, span->end, operand->odd ? '^' : '-', operand->odd ? Paint::error : Paint::note, operand->device});
  }
  const bool whole_line = frame.column < 0 || bare_source(frame.source).size() <= call.end - call.begin;
  if (marks.empty() && !whole_line) marks.push_back({call.begin, call.end, '^', Paint::error, ""});
  return marks;
}

}  // namespace devsan::report
