// `devsan diff RUN_A RUN_B`
#pragma once

namespace CLI {
class App;
}

namespace devsan::report {

// Adds the command to a program's own. Parsing the command line runs it and sets `exit_status`: 0 where the second run
// has nothing that the first has not, 1 where it has, 2 where a run cannot be read.
CLI::App* add_diff_command(CLI::App& app, int& exit_status);

}  // namespace devsan::report
