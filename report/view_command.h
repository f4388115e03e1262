// `devsan view DIR|FILE…`
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/command_output.h"

namespace CLI {
class App;
}

namespace devsan::report {

// A format that was asked for, and the file that it goes to: "" or "-" is the standard output.
struct Output {
  bool wanted = false;
  std::string file;
};

struct ViewOptions {
  std::vector<std::filesystem::path> paths;
  Output json;
  Output facts;
  Output candidates;
  Output html;
  Output sarif;
  Output markdown;
  Output perfetto;
  bool notes = false;
  bool suppressed = false;
  bool memory = false;
  bool all_runs = false;
  std::optional<std::filesystem::path> suppressions;  // instead of those that the processes were given
  std::optional<std::filesystem::path> rules;         // instead of those that the processes were given
  Colour colour = Colour::automatic;
};

// 0; 1 where nothing was readable or the output could not be written; 2 where the file of suppressions, or of rules, is
// wrong.
int view(const ViewOptions& options);

// Adds the command to a program's own. Parsing the command line runs it and sets `exit_status`; wrong usage is a
// CLI::ParseError, for which the program exits 2.
CLI::App* add_view_command(CLI::App& app, int& exit_status);

}  // namespace devsan::report
