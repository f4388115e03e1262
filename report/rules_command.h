// `devsan rules check|compile|diff` and `devsan learn`
#pragma once

namespace CLI {
class App;
}

namespace devsan::report {

// Adds the two commands to a program's own. Parsing the command line runs them and sets `exit_status`.
struct RulesCommands {
  CLI::App* rules;
  CLI::App* learn;
};
RulesCommands add_rules_commands(CLI::App& app, int& exit_status);

}  // namespace devsan::report
