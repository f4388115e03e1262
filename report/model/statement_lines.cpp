#include "report/model/statement_lines.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "trace/line_brackets.h"

namespace devsan::report {
namespace {

// Follows brackets and strings from line to line.
class Joiner {
 public:
  // False where a string stays open, as one of several lines does.
  bool add(std::string_view line) {
    const trace::LineBrackets brackets = trace::brackets_of(line);
    open_ += brackets.opened;
    append(line.substr(0, brackets.code_end));
    return !brackets.in_string;
  }
  bool open() const { return open_ > 0; }
  std::string take_text() { return std::move(text_); }
  std::vector<Frame::LaterLine> take_lines() { return std::move(lines_); }

 private:
  void append(std::string_view code) {
    const std::size_t last = code.find_last_not_of(" \t\r");
    code = code.substr(0, last == code.npos ? 0 : last + 1);
    if (first_) {
      text_ = code;
      first_ = false;
      return;
    }
    const std::size_t indent = std::min(code.find_first_not_of(" \t"), code.size());
    code.remove_prefix(indent);
    const bool joins = code.empty() || std::string_view(")]}").find(code.front()) != std::string_view::npos ||
                       std::string_view("([{").find(text_.back()) != std::string_view::npos;
    if (!joins) text_ += ' ';
    lines_.push_back({text_.size(), indent});
    text_ += code;
  }

  std::string text_;
  std::vector<Frame::LaterLine> lines_;
  int open_ = 0;
  bool first_ = true;
};

// Where a column of one of the frame's lines lies in the statement; npos where that is not known.
std::size_t offset_of(const Frame& frame, int line, int column) {
  if (column < 0 || line < frame.line) return std::string::npos;
  const auto at = static_cast<std::size_t>(column);
  const std::string& text = frame.statement();
  if (line == frame.line) return at <= text.size() ? at : std::string::npos;
  const auto later = static_cast<std::size_t>(line - frame.line - 1);
  if (later >= frame.later_lines.size() || at < frame.later_lines[later].indent) return std::string::npos;
  const std::size_t offset = frame.later_lines[later].begin + at - frame.later_lines[later].indent;
  return offset <= text.size() ? offset : std::string::npos;
}

}  // namespace

void join_lines(Frame& frame, const std::function<std::string_view(int line)>& line_of) {
  Joiner joiner;
  if (frame.source.empty() || !joiner.add(frame.source) || !joiner.open()) return;
  for (int line = frame.line + 1; joiner.open(); ++line) {
    if (line >= frame.line + trace::kMaxStatementLines || !joiner.add(line_of(line))) return;
  }
  frame.joined = joiner.take_text();
  frame.later_lines = joiner.take_lines();
}

std::string_view call_text_of(const Frame& frame) {
  const std::size_t begin = offset_of(frame, frame.line, frame.column);
  const std::size_t end = offset_of(frame, frame.end_line, frame.end_column);
  if (begin == std::string::npos || end == std::string::npos || end <= begin) return {};
  return std::string_view(frame.statement()).substr(begin, end - begin);
}

std::string_view behind_call(const Frame& frame) {
  const std::string_view call = call_text_of(frame);
  if (call.empty()) return {};
  const std::string_view statement = frame.statement();
  return statement.substr(static_cast<std::size_t>(call.data() - statement.data()) + call.size());
}

std::optional<Frame> later_line(const Frame& frame, int line) {
  const int later = line - frame.line - 1;
  if (later < 0 || later >= std::ssize(frame.later_lines)) return std::nullopt;
  const auto at = frame.later_lines.begin() + later;
  const std::size_t end = at + 1 == frame.later_lines.end() ? frame.joined.size() : (at + 1)->begin;
  Frame found = frame;
  found.line = found.end_line = line;
  found.column = found.end_column = -1;
  found.source = std::string(at->indent, ' ') + frame.joined.substr(at->begin, end - at->begin);
  while (found.source.ends_with(' ')) found.source.pop_back();  // that joins it with the next one
  found.joined.clear();
  found.later_lines.clear();
  return found;
}

}  // namespace devsan::report
