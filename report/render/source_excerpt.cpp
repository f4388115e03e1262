#include "report/render/source_excerpt.h"

#include <algorithm>
#include <iterator>

#include "report/text/text_layout.h"

namespace devsan::report {
namespace {

constexpr std::size_t kTabColumns = 4;
constexpr std::size_t kContinuationIndent = 4;
constexpr std::size_t kMaxExcerptRows = 3;

// A row of the excerpt: a run of the line's glyphs, shown from column `indent` on.
struct Row {
  std::size_t first = 0;
  std::size_t last = 0;  // one past
  std::size_t indent = 0;
  bool cut_before = false;
  bool cut_after = false;
};

struct Segment {
  std::size_t begin = 0;  // columns of the row
  std::size_t end = 0;
  const Mark* mark = nullptr;
  bool labelled = false;  // the mark ends in this row
};

std::vector<Glyph> cells_of(std::string_view source) {
  std::vector<Glyph> cells = glyphs_of(source);
  for (Glyph& cell : cells) {
    if (source[cell.offset] == '\t') {
      cell.bytes = "    ";
      cell.columns = kTabColumns;
    }
  }
  const auto blank = [](const Glyph& cell) { return cell.bytes.find_first_not_of(' ') == std::string_view::npos; };
  while (!cells.empty() && blank(cells.back())) cells.pop_back();
  cells.erase(cells.begin(), std::ranges::find_if_not(cells, blank));
  return cells;
}

std::size_t width_of(const std::vector<Glyph>& cells, std::size_t first, std::size_t last) {
  std::size_t columns = 0;
  for (std::size_t i = first; i < last; ++i) columns += cells[i].columns;
  return columns;
}

// A line of Python reads best when it is broken after a bracket, comma or blank, or before a dot.
bool may_break_before(const std::vector<Glyph>& cells, std::size_t at) {
  const std::string_view before = cells[at - 1].bytes;
  return before == " " || before == "(" || before == "[" || before == "," || cells[at].bytes == ".";
}

bool inside_mark(const Glyph& cell, const std::vector<Mark>& marks) {
  return std::ranges::any_of(marks, [&](const Mark& m) { return m.begin < cell.offset && cell.offset < m.end; });
}

// Of the places where the row may end, the last one outside of what is marked, if there is one in its second half.
std::size_t row_end(const std::vector<Glyph>& cells, const std::vector<Mark>& marks, std::size_t first,
                    std::size_t columns) {
  std::size_t end = first;
  for (std::size_t used = 0; end < cells.size() && used + cells[end].columns <= columns; ++end) {
    used += cells[end].columns;
  }
  if (end == cells.size()) return end;
  for (const bool spare_marks : {true, false}) {
    for (std::size_t at = end; at > first + (end - first) / 2; --at) {
      if (may_break_before(cells, at) && !(spare_marks && inside_mark(cells[at], marks))) return at;
    }
  }
  return std::max(end, first + 1);
}

std::vector<Row> break_rows(const std::vector<Glyph>& cells, const std::vector<Mark>& marks, std::size_t columns) {
  std::size_t first = 0;
  const std::size_t total = width_of(cells, 0, cells.size());
  // A line that does not fit at all is shown from what is marked on.
  if (total > kMaxExcerptRows * (columns - kContinuationIndent) && !marks.empty()) {
    const std::size_t marked = std::ranges::min(marks, {}, &Mark::begin).begin;
    while (first < cells.size() && cells[first].offset < marked) ++first;
    if (width_of(cells, 0, first) <= columns / 2) first = 0;
  }
  std::vector<Row> rows;
  while (first < cells.size() && rows.size() < kMaxExcerptRows) {
    Row row{first, 0, rows.empty() ? 0 : kContinuationIndent, rows.empty() && first > 0, false};
    if (row.cut_before) row.indent = 1;
    row.last = row_end(cells, marks, first, columns - row.indent - 1);
    first = row.last;
    rows.push_back(row);
  }
  if (!rows.empty()) rows.back().cut_after = first < cells.size();
  return rows;
}

std::vector<Segment> segments_of(const Row& row, const std::vector<Glyph>& cells, const std::vector<Mark>& marks) {
  std::vector<Segment> segments;
  for (const Mark& mark : marks) {
    Segment segment{0, 0, &mark, false};
    bool any = false;
    std::size_t column = row.indent;
    for (std::size_t i = row.first; i < row.last; column += cells[i].columns, ++i) {
      if (cells[i].offset < mark.begin || cells[i].offset >= mark.end) continue;
      if (!any) segment.begin = column;
      segment.end = column + cells[i].columns;
      any = true;
    }
    if (!any) continue;
    const bool ends_here = row.last == cells.size() || cells[row.last].offset >= mark.end;
    segment.labelled = (ends_here || row.cut_after) && !mark.label.empty();
    segments.push_back(segment);
  }
  std::ranges::sort(segments, {}, &Segment::begin);
  return segments;
}

// Text put at columns of a line, from left to right.
class Line {
 public:
  explicit Line(const Style& style) : style_(&style) {}
  void put(std::size_t column, Paint paint, std::string_view text) {
    text_.append(column - used_, ' ');
    text_ += painted(*style_, paint, text);
    used_ = column + columns_of(text);
  }
  const std::string& text() const { return text_; }

 private:
  const Style* style_;
  std::string text_;
  std::size_t used_ = 0;
};

bool fits_behind(const Segment& segment, std::size_t columns) {
  return segment.end + 1 + columns_of(segment.mark->label) <= columns;
}

// Labels that stand below their marks: from the right to the left, in one line as long as they do not touch, and with a
// bar down to those that come in a later line.
std::vector<Line> labels_below(const std::vector<Segment>& labelled, const Style& style) {
  std::vector<Line> lines;
  for (std::size_t left = labelled.size(); left > 0;) {
    std::size_t first = left - 1;  // of those in this line
    const auto touches_next = [&](std::size_t i) {
      return labelled[i].begin + columns_of(labelled[i].mark->label) + 1 > labelled[i + 1].begin;
    };
    while (first > 0 && !touches_next(first - 1)) --first;
    Line& line = lines.emplace_back(style);
    for (std::size_t i = 0; i < left; ++i) {
      line.put(labelled[i].begin, labelled[i].mark->paint, i < first ? "│" : labelled[i].mark->label);
    }
    left = first;
  }
  return lines;
}

// The marks in one line, with the label of the last one behind it, and the other labels below.
std::vector<std::string> mark_lines(const std::vector<Segment>& segments, std::size_t columns, const Style& style) {
  Line signs(style);
  for (const Segment& segment : segments) {
    signs.put(segment.begin, segment.mark->paint, std::string(segment.end - segment.begin, segment.mark->sign));
  }
  std::vector<Segment> below;
  std::ranges::copy_if(segments, std::back_inserter(below), &Segment::labelled);
  const Segment& last = segments.back();
  if (last.labelled && fits_behind(last, columns)) {
    signs.put(last.end + 1, last.mark->paint, last.mark->label);
    below.pop_back();
  }
  std::vector<std::string> lines = {signs.text()};
  for (const Line& line : labels_below(below, style)) lines.push_back(line.text());
  return lines;
}

std::string row_text(const Row& row, const std::vector<Glyph>& cells) {
  std::string text = row.cut_before ? "…" : std::string(row.indent, ' ');
  for (std::size_t i = row.first; i < row.last; ++i) text += cells[i].bytes;
  if (row.cut_after) text += "…";
  return text;
}

}  // namespace

std::size_t gutter_for(int largest_line) {
  return std::max<std::size_t>(std::to_string(largest_line).size(), 3) + 2;
}

std::string bare_source(std::string_view source) {
  std::string text;
  for (const Glyph& cell : cells_of(source)) text += cell.bytes;
  return text;
}

std::vector<std::string> excerpt(const Frame& frame, std::vector<Mark> marks, std::size_t gutter, const Style& style) {
  const std::vector<Glyph> cells = cells_of(frame.source);
  if (cells.empty()) return {};
  const std::string number = std::to_string(frame.line);
  const std::string rule = painted(style, Paint::place, "│");
  const std::string margin = std::string(gutter, ' ') + " " + rule + " ";
  const std::string numbered = std::string(gutter - std::min(number.size(), gutter), ' ') +
                               painted(style, Paint::place, number) + " " + rule + " ";

  std::vector<std::string> lines;
  const std::size_t columns = style.width - gutter - 3;
  for (const Row& row : break_rows(cells, marks, columns)) {
    lines.push_back((lines.empty() ? numbered : margin) + row_text(row, cells));
    const auto segments = segments_of(row, cells, marks);
    if (segments.empty()) continue;
    for (const std::string& line : mark_lines(segments, columns, style)) lines.push_back(margin + line);
  }
  return lines;
}

}  // namespace devsan::report
