// Paragraphs in a terminal, each a list of lines without line ends.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/text/style.h"
#include "report/text/text_layout.h"

namespace devsan::report {

using Lines = std::vector<std::string>;

// Below `indent`, wrapped to the style's width.
void append_wrapped(Lines& lines, std::string_view text, std::size_t indent, const Style& style,
                    Paint paint = Paint::plain, Places places = Places::cut);
// The same as an item of a list: what does not fit the first line stands two columns further in.
void append_item(Lines& lines, std::string_view text, const Style& style, Paint paint = Paint::plain);

}  // namespace devsan::report
