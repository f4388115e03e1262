#include "report/command_output.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>

namespace devsan::report {

void complain(const std::string& text) {
  std::cerr << "devsan: " << text << "\n";
}

bool write_out(const std::string& text, const std::string& file) {
  errno = 0;
  if (file.empty() || file == "-") {
    std::cout << text << std::flush;
    if (std::cout) return true;
    complain(std::string("cannot write the report: ") + std::strerror(errno));
    return false;
  }
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text << std::flush;
  if (out) return true;
  complain("cannot write " + file + ": " + std::strerror(errno));
  return false;
}

Style style_of(Colour colour) {
  Style style = style_for(STDOUT_FILENO);
  switch (colour) {
    case Colour::automatic:
      break;
    case Colour::always:
      style.colour = true;
      break;
    case Colour::never:
      style.colour = false;
      break;
  }
  return style;
}

void add_colour_option(CLI::App& command, Colour& colour) {
  const std::map<std::string, Colour> colours = {
      {"auto", Colour::automatic}, {"always", Colour::always}, {"never", Colour::never}};
  command
      .add_option("--color", colour,
                  "when to use color: auto, always or never (auto: on a terminal, unless NO_COLOR is set)")
      ->transform(CLI::CheckedTransformer(colours))
      ->option_text("WHEN");
}

}  // namespace devsan::report
