#include "report/text/lines.h"

#include "report/text/text_layout.h"

namespace devsan::report {

void append_wrapped(Lines& lines, std::string_view text, std::size_t indent, const Style& style, Paint paint,
                    Places places) {
  for (const std::string& line : wrap(text, style.width - indent, places)) {
    lines.push_back(line.empty() ? "" : std::string(indent, ' ') + painted(style, paint, line));
  }
}

void append_item(Lines& lines, std::string_view text, const Style& style, Paint paint) {
  Lines item;
  append_wrapped(item, text, 4, style, paint);
  if (!item.empty()) item.front().erase(0, 2);
  lines.insert(lines.end(), item.begin(), item.end());
}

}  // namespace devsan::report
