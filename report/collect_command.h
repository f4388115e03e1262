// `devsan collect HOST:DIR|DIR… --into DIR`
#pragma once

namespace CLI {
class App;
}

namespace devsan::report {

// Adds the command to a program's own. Parsing the command line runs it and sets `exit_status`: 0 where all that was
// asked for is there, 1 where something is not.
CLI::App* add_collect_command(CLI::App& app, int& exit_status);

}  // namespace devsan::report
