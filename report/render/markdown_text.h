// Texts of programs as Markdown that they cannot break out of. All of them are masked.
#pragma once

#include <string>
#include <string_view>

namespace devsan::report {

// In one line of code, with a fence that is longer than any in the text; "" for an empty text.
std::string code_span(std::string_view text);
// The same in a cell of a table.
std::string code_cell(std::string_view text);
// The same inside a tag of HTML, where Markdown is not read.
std::string html_code(std::string_view text);
// A block of lines, with a fence that is longer than any in the text.
std::string code_block(std::string_view language, std::string_view text);
// A sentence of devsan's, which may name things in `backticks`: all else is plain text.
std::string prose(std::string_view text);

}  // namespace devsan::report
