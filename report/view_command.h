// `devsan view DIR|FILE…`
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace devsan::report {

enum class Colour { automatic, always, never };

struct ViewOptions {
  std::vector<std::filesystem::path> paths;
  bool json = false;
  std::string json_file;        // "" or "-" is the standard output
  bool facts = false;           // instead of the report
  std::string facts_file;       // as json_file
  bool candidates = false;      // instead of the report
  std::string candidates_file;  // as json_file
  bool notes = false;
  bool suppressed = false;
  bool memory = false;
  bool all_runs = false;
  std::optional<std::filesystem::path> suppressions;  // instead of those that the processes were given
  Colour colour = Colour::automatic;
};

// 0; 1 where nothing was readable or the output could not be written; 2 where the file of suppressions is wrong.
int view(const ViewOptions& options);

// Adds the command to a program's own. Parsing the command line runs it and sets `exit_status`; wrong usage is a
// CLI::ParseError, for which the program exits 2.
CLI::App* add_view_command(CLI::App& app, int& exit_status);

}  // namespace devsan::report
