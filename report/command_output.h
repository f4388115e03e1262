// What the commands that read traces have in common: messages, files to write, colours.
#pragma once

#include <string>

#include "report/text/style.h"

namespace CLI {
class App;
}

namespace devsan::report {

enum class Colour { automatic, always, never };

// One line to the standard error.
void complain(const std::string& text);
// To the standard output for "" and "-". Complains and is false where that fails.
bool write_out(const std::string& text, const std::string& file);
// Of the standard output.
Style style_of(Colour colour);
void add_colour_option(CLI::App& command, Colour& colour);

}  // namespace devsan::report
