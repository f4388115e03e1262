// How a report is painted. The renderers ask for a role, never for a colour.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace devsan::report {

struct Style {
  bool colour = false;
  std::size_t width = 80;  // columns; see clamp_width
};

enum class Paint { plain, error, warning, note, strong, faint, good, place };

// The text in the paint's colour where the style has any.
std::string painted(const Style& style, Paint paint, std::string_view text);

// What `fd` calls for: colour on a terminal, unless NO_COLOR is set or TERM says that it can do nothing; its width, or
// 80 columns.
Style style_for(int fd);
// Between 60 and 110 columns: longer lines are hard to read, shorter ones cannot hold a table.
std::size_t clamp_width(std::size_t columns);

}  // namespace devsan::report
