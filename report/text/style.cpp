#include "report/text/style.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace devsan::report {
namespace {

std::string_view sequence_of(Paint paint) {
  switch (paint) {
    case Paint::plain:
      return "";
    case Paint::error:
      return "\x1b[1;31m";
    case Paint::warning:
      return "\x1b[1;33m";
    case Paint::note:
      return "\x1b[1;36m";
    case Paint::strong:
      return "\x1b[1m";
    case Paint::faint:
      return "\x1b[2m";
    case Paint::good:
      return "\x1b[1;32m";
    case Paint::place:
      return "\x1b[34m";
  }
  return "";
}

bool colour_wanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  const char* term = std::getenv("TERM");
  return term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

std::string painted(const Style& style, Paint paint, std::string_view text) {
  const std::string_view sequence = sequence_of(paint);
  if (!style.colour || sequence.empty() || text.empty()) return std::string(text);
  return std::string(sequence).append(text).append("\x1b[0m");
}

Style style_for(int fd) {
  Style style;
  if (isatty(fd) == 0) return style;
  style.colour = colour_wanted();
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) style.width = clamp_width(size.ws_col);
  return style;
}

std::size_t clamp_width(std::size_t columns) {
  return std::clamp<std::size_t>(columns, 60, 110);
}

}  // namespace devsan::report
