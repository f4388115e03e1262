#include "hooks/inprocess/source/traceback_text.h"

#include "trace/code_paths.h"

namespace devsan::hooks {

namespace {

constexpr std::string_view kMark = "Traceback (most recent call last):";
constexpr std::string_view kFile = "  File \"";

std::string_view take_line(std::string_view& text) noexcept {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return line;
}

// `  File "/srv/train.py", line 26, in __getitem__`
bool read_frame(std::string_view text, TracebackText& frame) noexcept {
  constexpr std::string_view kLine = "\", line ";
  constexpr std::string_view kIn = ", in ";
  text.remove_prefix(kFile.size());
  const std::size_t line = text.find(kLine);
  if (line == text.npos) return false;
  frame.file = text.substr(0, line);
  text.remove_prefix(line + kLine.size());
  const std::size_t in = text.find(kIn);
  frame.line = text.substr(0, in);
  frame.function = in == text.npos ? std::string_view() : text.substr(in + kIn.size());
  return true;
}

// "-- Process 0 terminated with the following error:" says the same without its marks.
std::string_view without_marks(std::string_view heading) noexcept {
  while (heading.starts_with('-') || heading.starts_with(' ')) heading.remove_prefix(1);
  while (heading.ends_with('.') || heading.ends_with(':') || heading.ends_with(' ')) heading.remove_suffix(1);
  return heading;
}

std::string_view heading_of(std::string_view before) noexcept {
  while (!before.empty()) {
    const std::string_view line = take_line(before);
    if (!line.empty() && line.find_first_not_of(" \"") != line.npos) return without_marks(line);
  }
  return {};
}

}  // namespace

std::optional<TracebackText> traceback_in(std::string_view text) noexcept {
  const std::size_t mark = text.find(kMark);
  if (mark == text.npos) return std::nullopt;
  TracebackText found;
  const std::size_t begin = text.rfind('\n', mark);
  found.heading = begin == text.npos ? std::string_view() : heading_of(text.substr(0, begin));
  // An exception that came of another stands behind that one.
  std::string_view rest = text.substr(mark);
  bool own = false;
  bool in_frames = false;
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    if (line.find(kMark) != line.npos) {
      own = false;
      in_frames = true;
    } else if (line.starts_with(kFile)) {
      TracebackText frame;
      if (!read_frame(line, frame)) continue;
      const bool program = !trace::is_library_path(frame.file);
      if (own && !program) continue;
      own = own || program;
      found.file = frame.file;
      found.line = frame.line;
      found.function = frame.function;
    } else if (in_frames && !line.empty() && line.front() != ' ') {
      found.exception = line;
      in_frames = false;
    }
  }
  return found;
}

}  // namespace devsan::hooks
