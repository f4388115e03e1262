// The text of code that lies in no file of its own: cells of a notebook and whatever else Python's linecache keeps,
// members of an archive, and the program that Python was given on its command line or standard input.
#pragma once

#include <string_view>

#include "trace/file_layout.h"

namespace devsan::hooks {

// What a code object calls its file, as text; lives as long as the process. Empty where nothing is known, or not yet:
// linecache can be read with the GIL only. What was found once is kept, for those who ask without it.
std::string_view text_without_file(trace::StringId file) noexcept;

// Has the line of such a text written to the trace by the interpreter itself, at its next instruction on the main
// thread, unless nothing is known of the text. Without the GIL.
void keep_line_soon(trace::StringId file, int line) noexcept;

}  // namespace devsan::hooks
