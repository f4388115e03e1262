// Laying out text in a terminal's columns. All text is UTF-8; what is not is shown as U+FFFD, and control characters
// never reach the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace devsan::report {

// One character: its bytes in the text, and the columns it takes up.
struct Glyph {
  std::string_view bytes;  // as it is shown
  std::size_t offset = 0;  // in the original text
  std::size_t columns = 1;
};

std::vector<Glyph> glyphs_of(std::string_view text);
std::size_t columns_of(std::string_view text);
// The text as it may be shown.
std::string printable(std::string_view text);

// Cuts at the right, in the middle, or at the left, with "…" for what is left out.
std::string cut_right(std::string_view text, std::size_t columns);
std::string cut_middle(std::string_view text, std::size_t columns);
// A path by its last parts: "…/runtime/zero/stage3.py".
std::string cut_path(std::string_view path, std::size_t columns);

std::string pad_right(std::string text, std::size_t columns);
std::string pad_left(const std::string& text, std::size_t columns);

// Whether a URL or a path that is longer than a line is cut. Nobody can follow one that is in pieces, but then a line
// is wider than the terminal.
enum class Places { cut, whole };

// Breaks at blanks, and words that are longer than a line where they must. Line breaks in the text stay.
std::vector<std::string> wrap(std::string_view text, std::size_t columns, Places places = Places::cut);

}  // namespace devsan::report
